package kconform;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.ExecutorService;

/**
 * Takes the place of a CoordinatorRuntime's threads: an event is run at once, or after the one that
 * made it; a task of its executor runs when the harness says so, and what it writes waits until then, too.
 */
final class ShardEvents {
  private final Deque<Object> waiting = new ArrayDeque<>();
  private final Deque<Runnable> tasks = new ArrayDeque<>();
  private final List<Object> held = new ArrayList<>();
  private boolean runs;
  private boolean holds;

  ShardEvents(Object runtime) {
    Object threads = Kafka.get(runtime, "processor");
    Kafka.set(runtime, "processor", loop(Kafka.fieldType(runtime, "processor")));
    Kafka.call(threads, "close");
    Object pool = Kafka.get(runtime, "executorService");
    Kafka.set(runtime, "executorService", executor());
    ((ExecutorService) pool).shutdown();
  }

  private Object loop(Class<?> type) {
    return Kafka.play(
        type,
        (proxy, method, arguments) -> {
          switch (method.getName()) {
            case "enqueueLast" -> enqueue(arguments[0]);
            case "enqueueFirst" -> waiting.addFirst(arguments[0]);
            default -> {}
          }
          drain();
          return null;
        });
  }

  private void enqueue(Object event) {
    if (holds) {
      held.add(event);
    } else {
      waiting.addLast(event);
    }
  }

  private Object executor() {
    return Kafka.play(
        ExecutorService.class,
        (proxy, method, arguments) -> {
          if (method.getName().equals("submit")) {
            tasks.addLast((Runnable) arguments[0]);
          }
          return null;
        });
  }

  private void drain() {
    if (runs) {
      return;
    }
    runs = true;
    try {
      while (!waiting.isEmpty()) {
        EventQueue.runNow(waiting.removeFirst());
      }
    } finally {
      runs = false;
    }
  }

  /** The executor's thread runs its task; the event that it makes waits for `release`. */
  void runTask() {
    if (tasks.isEmpty()) {
      throw new Broker.Refused("the executor has nothing to run");
    }
    holds = true;
    try {
      tasks.removeFirst().run();
    } finally {
      holds = false;
    }
  }

  /** The event of the task that has run. */
  void release() {
    if (held.isEmpty()) {
      throw new Broker.Refused("no task of the executor has run");
    }
    waiting.addAll(held);
    held.clear();
    drain();
  }

  /** Whether a task has run whose event waits. */
  boolean hasRun() {
    return !held.isEmpty();
  }

  /** Forget all tasks: the coordinator that scheduled them is gone. */
  void clear() {
    tasks.clear();
    held.clear();
  }
}
