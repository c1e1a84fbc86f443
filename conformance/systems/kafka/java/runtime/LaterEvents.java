package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Predicate;
import org.apache.kafka.server.util.timer.TimerTask;

/** A broker's timers and its pool: nothing of a shard comes back before an action names it. */
final class LaterEvents {
  /** A queued event; `source` is the TimerTask or the TaskRunnable that it is of. */
  private record Queued(Object event, Object source) {}

  /** The write of a timer. */
  private record Ran(int number, TimerTask source, CompletableFuture<?> future) {}

  private record Submitted(Object source, Runnable run) {}

  private final EventQueue events;
  private final ShardKind shards;
  private final List<String> names;
  private final Virtual.Clock clock;
  private final GroupTimers timers = new GroupTimers(this::note);
  private final List<Queued> queued = new ArrayList<>();
  private final List<Ran> ran = new ArrayList<>();
  private final Deque<Submitted> pool = new ArrayDeque<>();
  private final Map<Object, Integer> numbers = new IdentityHashMap<>();
  private final Map<Object, Integer> setAfter = new IdentityHashMap<>();

  LaterEvents(EventQueue events, ShardKind shards, Virtual.Clock clock) {
    this.events = events;
    this.shards = shards;
    this.clock = clock;
    names = shards.timerKeys().keySet().stream().sorted().toList();
  }

  /** The broker's timers, those of the runtime among them. */
  GroupTimers timers() {
    return timers;
  }

  /** Each write takes a millisecond. A retry has the operation, and so the age, of its timer. */
  private void note(TimerTask task) {
    if (isOfShard(task)) {
      setAfter.putIfAbsent(operation(task), (int) (clock.milliseconds() - Virtual.Clock.START));
    }
  }

  /** The number of an event's write: its name, or what it got when it ran. */
  int number(Object event) {
    Integer given = numbers.get(event);
    return given != null ? given : Integer.parseInt((String) Kafka.get(event, "name"));
  }

  // ---- what is registered ------------------------------------------------------------------

  /** Whether it is a shard's timer, and not the runtime's own. */
  static boolean isOfShard(TimerTask task) {
    return Kafka.has(task, "val$operation");
  }

  private static Object registered(Object context, String part, String key) {
    return context == null ? null : ((Map<?, ?>) Kafka.get(Kafka.get(context, part), "tasks")).get(key);
  }

  private static TimerTask timer(Object context, String key) {
    return (TimerTask) registered(context, "timer", key);
  }

  private static Object task(Object context) {
    return registered(context, "executor", StoreSessions.TASK_KEY);
  }

  private static String key(TimerTask task) {
    return (String) Kafka.get(task, "val$key");
  }

  private static Object operation(TimerTask task) {
    return Kafka.get(task, "val$operation");
  }

  private int of(TimerTask task) {
    return shards.setFor(operation(task), setAfter.get(operation(task)));
  }

  private String name(TimerTask task) {
    return names.stream().filter(name -> keyOf(name).equals(key(task))).findFirst().orElseThrow();
  }

  private String keyOf(String name) {
    return shards.timerKeys().get(name);
  }

  private static int input(Object task) {
    return ((StoreSessions.Echo) Proxy.getInvocationHandler(task)).input();
  }

  private boolean isQueued(Object source) {
    return queued.stream().anyMatch(event -> event.source == source);
  }

  private static boolean isOfTimer(Queued event, String key) {
    return event.source instanceof TimerTask task && key(task).equals(key);
  }

  private static boolean isOfTask(Queued event) {
    return !(event.source instanceof TimerTask);
  }

  // ---- steps -------------------------------------------------------------------------------

  /** ExecutorService.submit: the task waits. */
  void submit(Object context, Runnable run) {
    pool.add(new Submitted(task(context), run));
  }

  void fire(Object context, String name) {
    TimerTask task = timer(context, keyOf(name));
    if (task == null || !timers.pending().contains(task)) {
      throw new Broker.Refused("no timer " + name + " waits");
    }
    come(task, () -> timers.fire(task));
  }

  void runTasks() {
    if (pool.isEmpty()) {
      throw new Broker.Refused("no task was submitted");
    }
    while (!pool.isEmpty()) {
      Submitted submitted = pool.poll();
      come(submitted.source, submitted.run);
    }
  }

  private void come(Object source, Runnable step) {
    int before = events.size();
    step.run();
    if (events.size() > before) {
      queued.add(new Queued(events.newest(), source));
    }
  }

  CompletableFuture<?> runTimeout(Object context, String name, int number) {
    TimerTask registered = timer(context, keyOf(name));
    Queued event = take(one -> one.source == registered);
    CompletableFuture<?> future = run(event, number);
    ran.add(new Ran(number, registered, future));
    return future;
  }

  void runLateTimeout(Object context, String name) {
    TimerTask registered = timer(context, keyOf(name));
    events.runThis(take(one -> isOfTimer(one, keyOf(name)) && one.source != registered).event);
  }

  CompletableFuture<?> completeTask(Object context, int number) {
    Object registered = task(context);
    return run(take(one -> one.source == registered), number);
  }

  void completeLateTask(Object context) {
    Object registered = task(context);
    events.runThis(take(one -> isOfTask(one) && one.source != registered).event);
  }

  private CompletableFuture<?> run(Queued event, int number) {
    numbers.put(event.event, number);
    events.runThis(event.event);
    return (CompletableFuture<?>) Kafka.get(event.event, "future");
  }

  private Queued take(Predicate<Queued> isMeant) {
    Queued event =
        queued.stream()
            .filter(isMeant)
            .findFirst()
            .orElseThrow(() -> new Broker.Refused("no such event is queued"));
    queued.remove(event);
    return event;
  }

  // ---- what is seen ------------------------------------------------------------------------

  /** [[kind, of] by name, late events by name, [write, name, of] of writes that wait], then the task. */
  void view(JsonGenerator out, Object context) throws IOException {
    out.writeStartArray();
    out.writeStartArray();
    for (String name : names) {
      TimerTask task = timer(context, keyOf(name));
      pair(out, task == null ? "NONE" : isQueued(task) ? "FIRED" : "WAITS", task == null ? 0 : of(task));
    }
    out.writeEndArray();
    out.writeStartArray();
    for (String name : names) {
      TimerTask registered = timer(context, keyOf(name));
      out.writeNumber(count(one -> isOfTimer(one, keyOf(name)) && one.source != registered));
    }
    out.writeEndArray();
    out.writeStartArray();
    for (Ran expiry : ran) {
      if (!expiry.future.isDone()) {
        out.writeStartArray();
        out.writeNumber(expiry.number);
        out.writeString(name(expiry.source));
        out.writeNumber(of(expiry.source));
        out.writeEndArray();
      }
    }
    out.writeEndArray();
    out.writeEndArray();
    task(out, task(context));
  }

  /** [kind, input, late events]. */
  private void task(JsonGenerator out, Object task) throws IOException {
    out.writeStartArray();
    out.writeString(task == null ? "NONE" : isQueued(task) ? "DONE" : "SUBMITTED");
    out.writeNumber(task == null ? 0 : input(task));
    out.writeNumber(count(one -> isOfTask(one) && one.source != task));
    out.writeEndArray();
  }

  private long count(Predicate<Queued> isMeant) {
    return queued.stream().filter(isMeant).count();
  }

  private static void pair(JsonGenerator out, String kind, int of) throws IOException {
    out.writeStartArray();
    out.writeString(kind);
    out.writeNumber(of);
    out.writeEndArray();
  }
}
