package kconform;

import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntSupplier;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * GroupCoordinatorService over CoordinatorRuntime, GroupCoordinatorShard and GroupMetadataManager:
 * an event loop over a log that is replayed; the default from 4.0.
 */
final class ShardCoordinator implements Coordinator {
  private static final String PACKAGE = "org.apache.kafka.coordinator.group.";

  /** How the keys of members' timers begin; then come the group and the member. */
  private static final Map<String, Kind> OF_A_MEMBER =
      Map.of("heartbeat-", Kind.HEARTBEAT, "session-timeout-", Kind.SESSION, "rebalance-timeout-", Kind.REBALANCE);

  private final OffsetsTopic topic;
  private final Object config;
  private final GroupTimers timers = new GroupTimers();
  private final GroupTopics topics;
  private MetadataDelta delta;
  private boolean changed;
  private final ChosenAssignor assignor;
  private final Settings settings;
  private final Object service;
  private final Object runtime;
  private final ShardEvents events;

  ShardCoordinator(OffsetsTopic topic, Object config, Settings settings) {
    this.topic = topic;
    this.config = config;
    this.settings = settings;
    topics = new GroupTopics(settings.topics(), topic.process.metadata.image());
    delta = topics.reset();
    assignor = new ChosenAssignor(Kafka.call(config, "groupCoordinatorConfig"), topics, settings.assignors());
    service = build();
    runtime = Kafka.get(service, "runtime");
    events = new ShardEvents(runtime);
    Kafka.call(service, "startup", (IntSupplier) () -> 1);
    hearOfTopics();
  }

  private void hearOfTopics() {
    String update = Kafka.renamed(service, "onNewMetadataImage", "onMetadataUpdate");
    Kafka.wireCall(service, update, type -> metadata(Kafka.raw(type)));
    changed = false;
  }

  /** The coordinator hears of a topic: see GroupTopics. */
  void topicBecomes(int number, int size) {
    delta = topics.change(number, size);
    hearOfTopics();
    changed = true;
  }

  /** The topics' partitions, as the harness calls them. */
  GroupTopics topics() {
    return topics;
  }

  private Object metadata(Class<?> type) {
    return topics.as(type, delta);
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

  /** This one: all that it has of a partition goes with its resignation, and topics are as at first. */
  @Override
  public Coordinator afresh() {
    events.clear();
    assignor.forget();
    if (changed) {
      delta = topics.reset();
      hearOfTopics();
    }
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
    Object shard = shard();
    return shard == null
        ? null
        : ((Map<?, ?>) Kafka.get(Kafka.get(shard, "groupMetadataManager"), "groups")).get(id);
  }

  /** What is loaded of the partition; null if nothing is. */
  private Object shard() {
    Object context = context();
    return context == null ? null : Kafka.call(Kafka.get(context, "coordinator"), "coordinator");
  }

  private Object context() {
    return ((Map<?, ?>) Kafka.get(runtime, "coordinators")).get(OffsetsTopic.PARTITION);
  }

  /** The executor and what it has to do. */
  ShardEvents events() {
    return events;
  }

  /** Where the resolution of a group's regular expressions is: None, Scheduled, Run. */
  String resolution(String group) {
    boolean isScheduled = (boolean) Kafka.call(Kafka.get(context(), "executor"), "isScheduled", group + "-regex");
    return isScheduled ? events.hasRun() ? "Run" : "Scheduled" : "None";
  }

  /** Decides the targets of groups of KIP-848. */
  ChosenAssignor assignor() {
    return assignor;
  }

  /** What most members name, as ConsumerGroupDescribe shows it; the default if nobody names any. */
  String preferredAssignor(Object group) {
    Optional<?> named = (Optional<?>) Kafka.call(group, "preferredServerAssignor");
    return named.map(Object::toString).orElse(settings.assignors().get(0));
  }

  /** Whether the group's target is too new for another one; there are intervals from 4.3 on. */
  boolean intervalRuns(Object group) {
    if (settings.assignmentIntervalMs() == 0) {
      return false;
    }
    long made = (long) Kafka.call(group, "assignmentTimestamp");
    return made != 0 && topic.process.clock.milliseconds() < made + settings.assignmentIntervalMs();
  }

  /** A member of KIP-848 as ConsumerGroupDescribe shows it; `target` is its Assignment. */
  ConsumerGroupDescribeResponseData.Member described(Object member, Object target) {
    return (ConsumerGroupDescribeResponseData.Member)
        Kafka.wireCall(
            member,
            "asConsumerGroupDescribeMember",
            type -> Kafka.raw(type).isInstance(target) ? target : metadata(Kafka.raw(type)));
  }

  /** The offset that a group has committed of a partition; -1 if none. */
  long committed(String group, int partition) {
    Object offsets = Kafka.get(shard(), "offsetMetadataManager");
    Object offset = Kafka.call(offsets, "offset", group, Metadata.TOPIC, partition);
    return offset == null ? -1 : Kafka.number(Kafka.get(offset, "committedOffset"));
  }

  @Override
  public List<GroupTimer> timers(String group) {
    List<GroupTimer> found = new ArrayList<>();
    for (TimerTask task : timers.pending()) {
      if (Kafka.has(task, "val$key")) { // others are the time limits of the runtime's events
        String key = (String) Kafka.get(task, "val$key");
        Runnable fire = () -> timers.fire(task);
        OF_A_MEMBER.forEach(
            (start, kind) -> {
              String before = start + group + "-";
              if (key.startsWith(before)) {
                found.add(new GroupTimer(kind, key.substring(before.length()), 0, fire));
              }
            });
        if (key.equals("sync-" + group)) {
          found.add(new GroupTimer(Kind.SYNC, null, 0, fire));
        } else if (key.equals("join-" + group)) {
          found.add(joinTimer(task, fire));
        }
      }
    }
    return found;
  }

  private static GroupTimer joinTimer(TimerTask task, Runnable fire) {
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
