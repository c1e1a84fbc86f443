package kconform;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntSupplier;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.server.util.timer.TimerTask;

/** kafka.coordinator.group.GroupCoordinator: locks and purgatories; the default up to 3.9. */
final class ScalaCoordinator implements Coordinator {
  static final String ADAPTER = "kafka.coordinator.group.GroupCoordinatorAdapter";

  private final OffsetsTopic topic;
  private final Object config;
  private final GroupTimers timers = new GroupTimers();
  private final Object coordinator;
  private final Object manager;
  private final Object adapter;

  /** The KafkaConfig is shared by all that are alike: it reads and checks hundreds of values. */
  ScalaCoordinator(OffsetsTopic topic, Object config) {
    this.topic = topic;
    this.config = config;
    coordinator =
        Kafka.call(
            Kafka.companion("kafka.coordinator.group.GroupCoordinator"),
            "apply",
            config,
            topic.process.replicaManager,
            purgatory("Heartbeat"),
            purgatory("Rebalance"),
            topic.process.clock,
            new Metrics());
    manager = Kafka.call(coordinator, "groupManager");
    Kafka.set(manager, "scheduler", new ImmediateKafkaScheduler());
    adapter = Kafka.make(Kafka.type(ADAPTER), coordinator, topic.process.clock);
    Kafka.call(adapter, "startup", (IntSupplier) () -> 1);
  }

  private Object purgatory(String operation) {
    return Kafka.make(Kafka.type("DelayedOperationPurgatory"), operation, timers, 1, 1000, false, true);
  }

  /** A new one: the purgatories of this one keep the heartbeats of groups that it has unloaded. */
  @Override
  public Coordinator afresh() {
    return new ScalaCoordinator(topic, config);
  }

  @Override
  public Object service() {
    return adapter;
  }

  @Override
  public void elect(int epoch) {
    Kafka.call(adapter, "onElection", 0, epoch);
  }

  @Override
  public void resign(int epoch) {
    Kafka.call(adapter, "onResignation", 0, OptionalInt.of(epoch));
  }

  @Override
  public Object group(String id) {
    return Kafka.orNull(Kafka.call(manager, "getGroup", id));
  }

  @Override
  public List<GroupTimer> timers(String id) {
    List<GroupTimer> found = new ArrayList<>();
    Object group = group(id);
    for (TimerTask task : timers.pending()) {
      if (Kafka.get(task, "group") != group) {
        continue; // of a group that was unloaded or deleted
      }
      switch (task.getClass().getSimpleName()) {
        case "DelayedHeartbeat" ->
            found.add(timer(Kind.HEARTBEAT, (String) Kafka.get(task, "memberId"), 0, task));
        case "InitialDelayedJoin" ->
            found.add(timer(Kind.INITIAL_JOIN, null, (int) Kafka.get(task, "remainingMs"), task));
        case "DelayedJoin" -> found.add(timer(Kind.JOIN, null, 0, task));
        case "DelayedSync" -> found.add(timer(Kind.SYNC, null, 0, task));
        default -> throw new Kafka.Unsupported("nothing is known of a " + task.getClass());
      }
    }
    return found;
  }

  private GroupTimer timer(Kind kind, String member, int remainingMs, TimerTask task) {
    return new GroupTimer(kind, member, remainingMs, () -> timers.fire(task));
  }

  /** The adapter's callbacks complete the future that they close over. */
  @Override
  public boolean holds(Object member, CompletableFuture<?> answer) {
    return closesOver(Kafka.call(member, "awaitingJoinCallback"), answer)
        || closesOver(Kafka.call(member, "awaitingSyncCallback"), answer);
  }

  private static boolean closesOver(Object callback, Object answer) {
    return callback != null && Kafka.closedOver(callback).contains(answer);
  }
}
