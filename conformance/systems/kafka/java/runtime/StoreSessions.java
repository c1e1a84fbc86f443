package kconform;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * What the operations of a store do to their shard's CoordinatorTimer and CoordinatorExecutor.
 *
 * <p>A value is a session, whose timer deletes it; a task gives the value of k1 to k2.
 */
final class StoreSessions {
  private static final long SESSION_MS = 45_000;
  static final String TASK_KEY = "k1";
  private static final String RESULT_KEY = "k2";
  private static final Class<?> RESULT = Kafka.type(RuntimeBroker.PACKAGE + "CoordinatorResult");

  private final StoreShard store;
  private final Object timer;
  private final Object executor;
  private final boolean timed;

  StoreSessions(StoreShard store, Object timer, Object executor, boolean timed) {
    this.store = store;
    this.timer = timer;
    this.executor = executor;
    this.timed = timed;
  }

  /** The operation of a key's timer; `of` is the value that it was set for. */
  record Expiry(StoreShard store, String key, int of) implements InvocationHandler {
    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) {
      return written(store.deletion(key));
    }
  }

  /** A task that gives its input back; a map of tasks compares them. */
  record Echo(int input) implements InvocationHandler {
    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) {
      return switch (method.getName()) {
        case "equals" -> proxy == arguments[0];
        case "hashCode" -> System.identityHashCode(proxy);
        default -> input;
      };
    }
  }

  private static Object written(List<StoreShard.Entry> entries) {
    return Kafka.make(RESULT, entries, null, null, true, true);
  }

  /** What an operation has done with its records: values start timers, tombstones stop all. */
  void follow(List<StoreShard.Entry> entries) {
    for (StoreShard.Entry entry : entries) {
      if (entry.value() == null) {
        Kafka.call(timer, "cancel", entry.key());
        Kafka.call(executor, "cancel", entry.key());
      } else {
        start(entry.key(), entry.value());
      }
    }
  }

  private void start(String key, int value) {
    if (timed) {
      Object operation =
          Kafka.play(
              Kafka.type(RuntimeBroker.PACKAGE + "CoordinatorTimer$TimeoutOperation"),
              new Expiry(store, key, value));
      Kafka.call(timer, "schedule", key, SESSION_MS, TimeUnit.MILLISECONDS, true, operation);
    }
  }

  /** CoordinatorShard.onLoaded: each value gets its whole time. */
  void load() {
    List<Integer> values = store.latest();
    for (int i = 0; i < values.size(); i++) {
      if (values.get(i) != StoreShard.TOMBSTONE) {
        start(StoreShard.KEYS.get(i), values.get(i));
      }
    }
  }

  /** Schedules the task, if its key has a value. */
  void offload() {
    int input = store.latest().get(StoreShard.KEYS.indexOf(TASK_KEY));
    if (input == StoreShard.TOMBSTONE) {
      return;
    }
    Object task =
        Kafka.play(Kafka.type(RuntimeBroker.PACKAGE + "CoordinatorExecutor$TaskRunnable"), new Echo(input));
    Object operation =
        Kafka.play(
            Kafka.type(RuntimeBroker.PACKAGE + "CoordinatorExecutor$TaskOperation"),
            (proxy, method, arguments) -> complete((int) arguments[0]));
    Kafka.call(executor, "schedule", TASK_KEY, task, operation);
  }

  private Object complete(int result) {
    List<StoreShard.Entry> entries = List.of(new StoreShard.Entry(RESULT_KEY, result, StoreShard.VALUE_BYTES));
    follow(entries);
    return written(entries);
  }
}
