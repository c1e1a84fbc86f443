package kconform;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.LinkedList;
import java.util.List;

/** CoordinatorEventProcessor without threads: an event runs when the harness names it. */
final class EventQueue implements InvocationHandler {
  private final LinkedList<Object> events = new LinkedList<>();

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) {
    switch (method.getName()) {
      case "enqueueLast" -> events.addLast(arguments[0]);
      case "enqueueFirst" -> events.addFirst(arguments[0]);
      default -> {}
    }
    return null;
  }

  /** Runs the oldest event whose name begins so. Refused if there is none. */
  void run(String prefix) {
    Object event =
        events.stream()
            .filter(queued -> isNamed(queued, prefix))
            .findFirst()
            .orElseThrow(() -> new Broker.Refused("no event " + prefix + " is queued"));
    runThis(event);
  }

  /** Runs an event that is queued. */
  void runThis(Object event) {
    events.remove(event);
    runNow(event);
  }

  int size() {
    return events.size();
  }

  /** The event that stands last. */
  Object newest() {
    return events.getLast();
  }

  /** Runs all events whose names begin so, oldest first, one at least. */
  void runAll(String prefix) {
    long queued = events.stream().filter(event -> isNamed(event, prefix)).count();
    for (long i = 0; i < Math.max(1, queued); i++) {
      run(prefix);
    }
  }

  private static boolean isNamed(Object event, String prefix) {
    return ((String) Kafka.get(event, "name")).startsWith(prefix);
  }

  /** As MultiThreadedEventProcessor does. */
  static void runNow(Object event) {
    try {
      Kafka.call(event, "run");
    } catch (Throwable error) {
      Kafka.call(event, "complete", error);
    }
  }
}
