package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Time;

/**
 * One consumer of group.protocol=consumer: Kafka's ConsumerMembershipManager,
 * ConsumerHeartbeatRequestManager, CommitRequestManager, CoordinatorRequestManager and
 * SubscriptionState, as RequestManagers wires them.
 *
 * <p>Both threads of AsyncKafkaConsumer are the harness's. The background thread polls a manager when
 * a step says so. The application runs the callbacks that the managers have queued when a step says so.
 * The member's id is its name.
 */
final class ConsumerMember {
  private static final String INTERNALS = "org.apache.kafka.clients.consumer.internals.";
  private static final int FOREVER_MS = Integer.MAX_VALUE;
  private static final long BACK_OFF_MS = 100;
  private static final Set<String> IN_GROUP = Set.of("JOINING", "STABLE", "RECONCILING", "ACKNOWLEDGING");

  /** What a member is started with. */
  record Settings(String name, String instance, int rebalanceMs, int partitions) {}

  private static final Map<Settings, ConsumerConfig> CONFIGS = new HashMap<>();

  private final Virtual.Clock clock = new Virtual.Clock();
  private final BlockingQueue<Object> events = new LinkedBlockingQueue<>();
  private final Owned owned = new Owned();
  private final MetadataResponse topic;
  private final UnsentRequests network;
  private final Object metadata;
  private final Object subscriptions;
  private final Object coordinator;
  private final Object commits;
  private final Object membership;
  private final Object heartbeats;

  ConsumerMember(Settings settings) {
    topic = Member.topic(settings.partitions, Metadata.TOPIC_ID);
    network = new UnsentRequests(clock, settings.name, settings.rebalanceMs);
    ConsumerConfig config = config(settings);
    Metrics metrics = new Metrics();
    subscriptions = Kafka.wire(type("SubscriptionState"), Member::reset);
    metadata =
        Kafka.make(
            type("ConsumerMetadata"), config, subscriptions, Member.logContext(), new ClusterResourceListeners());
    coordinator =
        Kafka.make(
            type("CoordinatorRequestManager"), Member.logContext(), BACK_OFF_MS, BACK_OFF_MS, Groups.GROUP);
    Queue<Optional<String>> names = new ArrayDeque<>(List.of(Optional.ofNullable(settings.instance)));
    List<Object> known = new ArrayList<>(List.of(config, metrics, subscriptions, metadata, coordinator));
    Function<Type, Object> part = one -> part(one, known, names, settings);
    known.add(Kafka.wirePublic(type("events.BackgroundEventHandler"), part));
    commits = Kafka.wirePublic(type("CommitRequestManager"), part);
    known.add(commits);
    names.add(Optional.ofNullable(settings.instance));
    membership = Kafka.wirePublic(type("ConsumerMembershipManager"), part);
    Kafka.set(membership, "memberId", settings.name);
    Kafka.call(membership, "registerStateListener", commits);
    known.add(membership);
    heartbeats = Kafka.wirePublic(type("ConsumerHeartbeatRequestManager"), part);
    findCoordinator();
  }

  // ---- what it is made of --------------------------------------------------------------------

  private static Class<?> type(String name) {
    return Kafka.type(INTERNALS + name);
  }

  /** `names`: what the next optional names are, the instance id first; none after that. */
  private Object part(Type type, List<Object> known, Queue<Optional<String>> names, Settings settings) {
    Class<?> raw = Kafka.raw(type);
    for (Object one : known) {
      if (raw.isInstance(one)) {
        return one;
      }
    }
    if (raw == Optional.class) {
      return names.isEmpty() ? Optional.empty() : names.remove();
    }
    if (raw == BlockingQueue.class) {
      return events;
    }
    if (raw == Time.class) {
      return clock;
    }
    if (raw == String.class) {
      return Groups.GROUP;
    }
    if (raw == int.class) {
      return settings.rebalanceMs;
    }
    if (raw == boolean.class) {
      return false; // auto commit
    }
    if (raw == List.class) {
      return List.of();
    }
    return raw == Kafka.type("LogContext")
        ? Member.logContext()
        : Kafka.wire(raw, one -> part(one, known, names, settings));
  }

  private static ConsumerConfig config(Settings settings) {
    return CONFIGS.computeIfAbsent(settings, ConsumerMember::newConfig);
  }

  private static ConsumerConfig newConfig(Settings settings) {
    Map<String, Object> values =
        new HashMap<>(
            Map.of(
                "bootstrap.servers", "127.0.0.1:9092",
                "group.id", Groups.GROUP,
                "group.protocol", "consumer",
                "enable.auto.commit", false,
                "max.poll.interval.ms", settings.rebalanceMs,
                "retry.backoff.ms", BACK_OFF_MS,
                "retry.backoff.max.ms", BACK_OFF_MS,
                "key.deserializer", ByteArrayDeserializer.class,
                "value.deserializer", ByteArrayDeserializer.class));
    if (settings.instance != null) {
      values.put("group.instance.id", settings.instance);
    }
    return new ConsumerConfig(values);
  }

  /** The partitions that the application has, by its callbacks. */
  private static final class Owned implements ConsumerRebalanceListener {
    private final SortedSet<Integer> partitions = new TreeSet<>();

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> added) {
      added.forEach(one -> partitions.add(one.partition()));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> gone) {
      gone.forEach(one -> partitions.remove(one.partition()));
    }
  }

  // ---- the application -----------------------------------------------------------------------

  /** KafkaConsumer.subscribe, and the poll after it. */
  void join() {
    if (!state().equals("UNSUBSCRIBED") || isLeaving()) {
      throw new Broker.Refused("the consumer is " + state() + " and does not join");
    }
    Kafka.call(subscriptions, "subscribe", Set.of(Metadata.TOPIC), Optional.of(owned));
    Kafka.call(metadata, "updateWithCurrentRequestVersion", topic, false, clock.milliseconds());
    Kafka.call(membership, "onSubscriptionUpdated");
    Kafka.call(membership, "onConsumerPoll");
  }

  /** A poll that lets the background thread reconcile; what it wants of the application waits. */
  void beginReconciliation() {
    Kafka.call(membership, "maybeReconcile", true);
  }

  /** onPartitionsRevoked of what the newest assignment does not have. */
  void revoke() {
    if (partitions("currentTargetAssignment").containsAll(owned.partitions)) {
      throw new Broker.Refused("the consumer has nothing to revoke");
    }
    beginReconciliation();
    if (!callsBack("ON_PARTITIONS_REVOKED")) {
      throw new Broker.Refused("the consumer does not revoke");
    }
    runCallback();
  }

  /** onPartitionsAssigned of what is new in the newest assignment. */
  void assign() {
    if (!partitions("currentTargetAssignment").containsAll(owned.partitions)) {
      throw new Broker.Refused("the consumer has something to revoke first");
    }
    beginReconciliation();
    if (!callsBack("ON_PARTITIONS_ASSIGNED")) {
      throw new Broker.Refused("the consumer assigns nothing");
    }
    runCallback();
  }

  /** KafkaConsumer.poll runs all callbacks that wait for it. */
  void poll() {
    while (!events.isEmpty()) {
      runCallback();
    }
  }

  /** KafkaConsumer.unsubscribe with its callback, up to the last heartbeat. */
  void leave() {
    Kafka.call(membership, "leaveGroup");
    while (!events.isEmpty()) {
      if (isAssignment(events.peek())) { // KAFKA-20428
        future(events.remove()).completeExceptionally(new KafkaException("the consumer unsubscribes"));
      } else {
        runCallback();
      }
    }
    heartbeat();
  }

  /** KafkaConsumer.commitAsync of this offset of all that it owns. */
  void commit(long offset) {
    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
    owned.partitions.forEach(
        one -> offsets.put(new TopicPartition(Metadata.TOPIC, one), new OffsetAndMetadata(offset)));
    Kafka.call(commits, "commitAsync", offsets);
    network.send(Kafka.call(commits, "poll", clock.milliseconds()));
  }

  private boolean callsBack(String method) {
    return !events.isEmpty() && method(events.peek()).equals(method);
  }

  /** A callback's name, by Kafka; empty for an error that poll throws. */
  private static String method(Object event) {
    if (isAssignment(event)) {
      return "ON_PARTITIONS_ASSIGNED";
    }
    return event.getClass().getSimpleName().equals("ErrorEvent")
        ? ""
        : ((Enum<?>) Kafka.call(event, "methodName")).name();
  }

  /** From 4.3 on what is assigned is an event of its own. */
  private static boolean isAssignment(Object event) {
    return event.getClass().getSimpleName().equals("PartitionsAssignedEvent");
  }

  private static CompletableFuture<?> future(Object event) {
    return (CompletableFuture<?>) Kafka.call(event, "future");
  }

  /** As AsyncKafkaConsumer.BackgroundEventProcessor. */
  private void runCallback() {
    Object event = events.remove();
    switch (method(event)) {
      case "ON_PARTITIONS_ASSIGNED" -> owned.onPartitionsAssigned(added(event));
      case "ON_PARTITIONS_REVOKED" -> owned.onPartitionsRevoked(removed(event));
      case "ON_PARTITIONS_LOST" -> owned.onPartitionsLost(removed(event));
      default -> {
        return;
      }
    }
    future(event).complete(null);
  }

  @SuppressWarnings("unchecked")
  private Collection<TopicPartition> added(Object event) {
    if (!isAssignment(event)) {
      return removed(event);
    }
    Collection<TopicPartition> added = (Collection<TopicPartition>) Kafka.call(event, "addedPartitions");
    Kafka.call(membership, "applyAssignment", Kafka.call(event, "assignedPartitions"), added);
    return added;
  }

  @SuppressWarnings("unchecked")
  private static Collection<TopicPartition> removed(Object event) {
    return (Collection<TopicPartition>) Kafka.call(event, "partitions");
  }

  // ---- the background thread -----------------------------------------------------------------

  /** The interval is over; the application has polled meanwhile. */
  void heartbeat() {
    if (!isLeaving() && !IN_GROUP.contains(state())) {
      throw new Broker.Refused("the consumer is " + state() + " and sends no heartbeat");
    }
    for (int i = 0; i < 3; i++) { // an interval, and a back-off
      Kafka.call(heartbeats, "resetPollTimer", clock.milliseconds());
      Object result = Kafka.call(heartbeats, "poll", clock.milliseconds());
      if (network.send(result)) {
        return;
      }
      clock.sleep((long) Kafka.get(result, "timeUntilNextPollMs"));
    }
    throw new Broker.Refused("the consumer sends no heartbeat");
  }

  /** An answer, without its size; null: it or the request is lost. */
  void answer(long request, ByteBuffer frame) {
    network.answer(request, frame);
    findCoordinator();
    if (state().equals("FATAL")) {
      poll();
    }
  }

  /** After a broken connection the coordinator is looked for; the answer is there at once. */
  private void findCoordinator() {
    while (((Optional<?>) Kafka.call(coordinator, "coordinator")).isEmpty()) {
      clock.sleep(2 * BACK_OFF_MS);
      network.answerFindCoordinator(Kafka.call(coordinator, "poll", clock.milliseconds()));
    }
  }

  // ---- what is seen --------------------------------------------------------------------------

  private String state() {
    return Kafka.call(membership, "state").toString();
  }

  private boolean isLeaving() {
    return ((Optional<?>) Kafka.get(membership, "leaveGroupInProgress")).isPresent();
  }

  private Collection<Integer> partitions(String assignment) {
    Object partitions = ((Map<?, ?>) Kafka.get(Kafka.get(membership, assignment), "partitions")).get(Metadata.TOPIC_ID);
    @SuppressWarnings("unchecked")
    Collection<Integer> numbers = partitions == null ? Set.of() : (Collection<Integer>) partitions;
    return numbers;
  }

  /** Whether a heartbeat has said which assignment it has reconciled itself to. */
  private boolean hasNamed() {
    Object sent = Kafka.get(Kafka.get(Kafka.get(heartbeats, "heartbeatState"), "sentFields"), "localAssignment");
    return Kafka.get(membership, "currentAssignment").equals(sent);
  }

  /** [state, leaving, epoch, given, owned, local, named, requests sent]. */
  void write(JsonGenerator out) throws IOException {
    out.writeStartArray();
    out.writeString(state());
    out.writeBoolean(isLeaving());
    out.writeNumber((int) Kafka.call(membership, "memberEpoch"));
    out.writeObject(partitions("currentTargetAssignment"));
    out.writeObject(owned.partitions);
    out.writeObject(partitions("currentAssignment"));
    out.writeBoolean(hasNamed());
    network.write(out);
    out.writeEndArray();
  }
}
