package kconform;

import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntSupplier;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * GroupCoordinatorService over CoordinatorRuntime, GroupCoordinatorShard and GroupMetadataManager:
 * an event loop over a log that is replayed; the default from 4.0.
 */
final class ShardCoordinator implements Coordinator {
  private static final String PACKAGE = "org.apache.kafka.coordinator.group.";
  private static final String RUNTIME = "org.apache.kafka.coordinator.common.runtime.";

  private final OffsetsTopic topic;
  private final Object config;
  private final GroupTimers timers = new GroupTimers();
  private final Object service;
  private final Object runtime;

  ShardCoordinator(OffsetsTopic topic, Object config) {
    this.topic = topic;
    this.config = config;
    service = build();
    runtime = Kafka.get(service, "runtime");
    runAtOnce();
    Kafka.call(service, "startup", (IntSupplier) () -> 1);
    String update = Kafka.renamed(service, "onNewMetadataImage", "onMetadataUpdate");
    Kafka.wireCall(service, update, type -> metadata(Kafka.raw(type)));
  }

  /** The image or the delta; 4.2 takes both in a coordinator's own view of them. */
  private Object metadata(Class<?> type) {
    Object plain = type.getSimpleName().endsWith("MetadataImage") ? topic.image : topic.delta;
    return type.isInstance(plain)
        ? plain
        : Kafka.make(Kafka.type(RUNTIME + "KRaft" + type.getSimpleName()), plain);
  }

  private Object build() {
    Object builder =
        Kafka.make(
            Kafka.type(PACKAGE + "GroupCoordinatorService$Builder"),
            topic.process.id,
            Kafka.call(config, "groupCoordinatorConfig"));
    for (Method method : builder.getClass().getMethods()) {
      if (method.getName().startsWith("with")) {
        Kafka.call(builder, method.getName(), part(method.getGenericParameterTypes()[0]));
      }
    }
    return Kafka.call(builder, "build");
  }

  /** What the service is made of. Of share groups and their like there are none here. */
  private Object part(Type type) {
    Class<?> raw = Kafka.raw(type);
    if (raw == Time.class) {
      return topic.process.clock;
    }
    if (raw == Timer.class) {
      return timers;
    }
    if (raw == Optional.class) {
      return Optional.empty();
    }
    return switch (raw.getSimpleName()) {
      case "PartitionWriter" -> writer(raw);
      case "CoordinatorLoader" ->
          CoordinatorLoaders.over(
              topic.process, Kafka.make(Kafka.type(PACKAGE + "GroupCoordinatorRecordSerde")));
      case "CoordinatorRuntimeMetrics" ->
          Kafka.make(Kafka.type(PACKAGE + "metrics.GroupCoordinatorRuntimeMetrics"), new Metrics());
      case "GroupCoordinatorMetrics" -> Kafka.make(raw);
      case "GroupConfigManager" -> Kafka.wire(raw, this::groupConfig);
      default -> Kafka.play(raw, (proxy, method, arguments) -> null);
    };
  }

  /** Kafka's own; it appends with acks=1, which no min.insync.replicas refuses. */
  private Object writer(Class<?> type) {
    Object writer =
        Kafka.make(
            Kafka.type("kafka.coordinator.group.CoordinatorPartitionWriter"),
            topic.process.replicaManager);
    return Kafka.play(
        type,
        (proxy, method, arguments) -> {
          if (topic.refuses() && method.getName().equals("append")) {
            throw Errors.NOT_ENOUGH_REPLICAS.exception();
          }
          return Kafka.call(writer, method.getName(), arguments);
        });
  }

  private Object groupConfig(Type type) {
    String name = Kafka.raw(type).getSimpleName();
    return name.equals("Map")
        ? Map.of()
        : Kafka.call(config, Character.toLowerCase(name.charAt(0)) + name.substring(1));
  }

  /** Takes the place of the threads: an event is run at once, or after the one that made it. */
  private void runAtOnce() {
    Object threads = Kafka.get(runtime, "processor");
    Deque<Object> waiting = new ArrayDeque<>();
    boolean[] running = new boolean[1];
    Object loop =
        Kafka.play(
            Kafka.fieldType(runtime, "processor"),
            (proxy, method, arguments) -> {
              switch (method.getName()) {
                case "enqueueLast" -> waiting.addLast(arguments[0]);
                case "enqueueFirst" -> waiting.addFirst(arguments[0]);
                default -> {}
              }
              drain(waiting, running);
              return null;
            });
    Kafka.set(runtime, "processor", loop);
    Kafka.call(threads, "close");
  }

  private static void drain(Deque<Object> waiting, boolean[] running) {
    if (running[0]) {
      return;
    }
    running[0] = true;
    try {
      while (!waiting.isEmpty()) {
        EventQueue.runNow(waiting.removeFirst());
      }
    } finally {
      running[0] = false;
    }
  }

  /** This one: all that it has of a partition goes with its resignation. */
  @Override
  public Coordinator afresh() {
    return this;
  }

  @Override
  public Object service() {
    return service;
  }

  @Override
  public void elect(int epoch) {
    Kafka.call(service, "onElection", 0, epoch);
  }

  @Override
  public void resign(int epoch) {
    Kafka.call(service, "onResignation", 0, OptionalInt.of(epoch));
  }

  @Override
  public Object group(String id) {
    Object context = ((Map<?, ?>) Kafka.get(runtime, "coordinators")).get(OffsetsTopic.PARTITION);
    if (context == null) {
      return null;
    }
    Object shard = Kafka.call(Kafka.get(context, "coordinator"), "coordinator");
    Map<?, ?> groups = (Map<?, ?>) Kafka.get(Kafka.get(shard, "groupMetadataManager"), "groups");
    return groups.get(id);
  }

  @Override
  public List<GroupTimer> timers(String group) {
    List<GroupTimer> found = new ArrayList<>();
    for (TimerTask task : timers.pending()) {
      if (Kafka.has(task, "val$key")) { // others are the time limits of the runtime's events
        found.add(timer((String) Kafka.get(task, "val$key"), group, task));
      }
    }
    return found;
  }

  private GroupTimer timer(String key, String group, TimerTask task) {
    Runnable fire = () -> timers.fire(task);
    if (key.equals("sync-" + group)) {
      return new GroupTimer(Kind.SYNC, null, 0, fire);
    }
    if (!key.equals("join-" + group)) {
      return new GroupTimer(Kind.HEARTBEAT, key.substring(("heartbeat-" + group + "-").length()), 0, fire);
    }
    // tryCompleteInitialRebalanceElseSchedule(groupId, delayMs, remainingMs), as a lambda.
    List<Object> numbers =
        Kafka.closedOver(Kafka.get(task, "val$operation")).stream().filter(Integer.class::isInstance).toList();
    return numbers.isEmpty()
        ? new GroupTimer(Kind.JOIN, null, 0, fire)
        : new GroupTimer(Kind.INITIAL_JOIN, null, (int) numbers.get(1), fire);
  }

  @Override
  public boolean holds(Object member, CompletableFuture<?> answer) {
    return Kafka.call(member, "awaitingJoinFuture") == answer
        || Kafka.call(member, "awaitingSyncFuture") == answer;
  }
}
