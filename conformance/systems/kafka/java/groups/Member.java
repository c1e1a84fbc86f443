package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.GroupRebalanceConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetCommitCallback;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Time;

/**
 * One consumer's membership: Kafka's ConsumerCoordinator with its heartbeat thread, and its network.
 *
 * <p>The application is the harness: it polls with no time to wait, so poll sends a JoinGroup or sees
 * the end of one and comes back. Between a join that failed and the next one, which are one loop in
 * AbstractCoordinator.joinGroupIfNeeded, the specification has a step: there poll is ended by an
 * exception, where the loop asks the network whether the coordinator can be reached.
 *
 * <p>The heartbeat thread is Kafka's own, and runs. All that it does, it does while it holds the
 * coordinator's monitor. So does every step of the harness: the thread has its turn in the one step
 * that is its own, and a turn is over when the monitor is free again.
 */
final class Member {
  static final String TOPIC = "topic";

  private static final String INTERNALS = "org.apache.kafka.clients.consumer.internals.";
  private static final int FOREVER_MS = Integer.MAX_VALUE;
  private static final long WAIT_MS = 10_000;
  private static final short METADATA_VERSION = 12;

  /** What a member is started with. */
  record Settings(
      String name,
      String instance,
      List<String> protocols,
      int sessionMs,
      int rebalanceMs,
      int joinVersion,
      int partitions) {}

  private static final class NotYet extends RuntimeException {
    private static final NotYet NOW = new NotYet();

    private NotYet() {
      super("no join begins before the harness says so", null, false, false);
    }
  }

  /** Assigns ranges under any name: the specification has one way to assign. */
  private static final class NamedAssignor extends RangeAssignor {
    private final String name;

    NamedAssignor(String name) {
      this.name = name;
    }

    @Override
    public String name() {
      return name;
    }
  }

  private static final Map<Settings, ConsumerConfig> CONFIGS = new HashMap<>();

  private final Virtual.Clock clock = new Virtual.Clock();
  private final List<ConsumerPartitionAssignor> assignors = new ArrayList<>();
  private final MemberNetwork network;
  private final Object metadata;
  private final MetadataResponse topic;
  private final Object client;
  private final Object subscriptions;
  private final Object coordinator;
  private boolean polling;
  private boolean mayJoin;
  private boolean failed;

  Member(Settings settings) {
    network =
        new MemberNetwork(
            clock, settings.name, settings.joinVersion, this::beforeUse, this::updateMetadata);
    use(settings.protocols);
    ConsumerConfig config = config(settings);
    subscriptions = Kafka.wire(type("SubscriptionState"), Member::reset);
    Kafka.call(subscriptions, "subscribe", Set.of(TOPIC), Optional.empty());
    metadata =
        Kafka.make(
            type("ConsumerMetadata"), config, subscriptions, logContext(), new ClusterResourceListeners());
    topic = topic(settings.partitions, new Uuid(1, 3));
    client =
        Kafka.make(
            type("ConsumerNetworkClient"),
            logContext(), network.client(), metadata, clock, 1L, FOREVER_MS, FOREVER_MS);
    Object rebalance = new GroupRebalanceConfig(config, GroupRebalanceConfig.ProtocolType.CONSUMER);
    Object interceptors = Kafka.wire(type("ConsumerInterceptors"), one -> Kafka.raw(one) == List.class ? List.of() : new Metrics());
    coordinator =
        Kafka.wire(
            type("ConsumerCoordinator"),
            one -> part(Kafka.raw(one), List.of(rebalance, client, metadata, subscriptions, interceptors)));
    findCoordinator();
  }

  // ---- what it is made of --------------------------------------------------------------------

  private static Class<?> type(String name) {
    return Kafka.type(INTERNALS + name);
  }

  static Object logContext() {
    return Kafka.make(Kafka.type("LogContext"));
  }

  /** SubscriptionState's parts: new offsets are read from the earliest on. */
  static Object reset(Type type) {
    Class<?> raw = Kafka.raw(type);
    return raw == Kafka.type("LogContext") ? logContext() : Kafka.getStatic(raw, "EARLIEST");
  }

  private Object part(Class<?> raw, List<Object> known) {
    for (Object one : known) {
      if (raw.isInstance(one)) {
        return one;
      }
    }
    if (raw == List.class) {
      return assignors;
    }
    if (raw == Time.class) {
      return clock;
    }
    if (raw == Metrics.class) {
      return new Metrics();
    }
    if (raw == boolean.class) {
      return false; // auto commit, throwing on unstable offsets
    }
    if (raw == int.class) {
      return 0;
    }
    if (raw == String.class) {
      return ""; // metrics' prefix, rack
    }
    return raw == Optional.class ? Optional.empty() : logContext();
  }

  /** Made once for all members that are alike: it reads and prints a hundred values. */
  private static ConsumerConfig config(Settings settings) {
    return CONFIGS.computeIfAbsent(settings, Member::newConfig);
  }

  private static ConsumerConfig newConfig(Settings settings) {
    Map<String, Object> values =
        new HashMap<>(
            Map.of(
                "bootstrap.servers", "127.0.0.1:9092",
                "group.id", Groups.GROUP,
                "session.timeout.ms", settings.sessionMs,
                "max.poll.interval.ms", settings.rebalanceMs,
                "heartbeat.interval.ms", 1,
                "retry.backoff.ms", 100L,
                "retry.backoff.max.ms", 100L,
                "key.deserializer", ByteArrayDeserializer.class,
                "value.deserializer", ByteArrayDeserializer.class));
    if (settings.instance != null) {
      values.put("group.instance.id", settings.instance);
    }
    return new ConsumerConfig(values);
  }

  /** What a client hears of the only topic. */
  static MetadataResponse topic(int partitions, Uuid id) {
    MetadataResponseData.MetadataResponseTopic topic =
        new MetadataResponseData.MetadataResponseTopic().setName(TOPIC).setTopicId(id);
    for (int i = 0; i < partitions; i++) {
      topic
          .partitions()
          .add(
              new MetadataResponseData.MetadataResponsePartition()
                  .setPartitionIndex(i)
                  .setLeaderId(0)
                  .setReplicaNodes(List.of(0))
                  .setIsrNodes(List.of(0)));
    }
    MetadataResponseData data = new MetadataResponseData();
    data.topics().add(topic);
    data.brokers()
        .add(new MetadataResponseData.MetadataResponseBroker().setNodeId(0).setHost("127.0.0.1").setPort(9092));
    return new MetadataResponse(data, METADATA_VERSION);
  }

  // ---- the application -----------------------------------------------------------------------

  private void beforeUse() {
    if (polling && !mayJoin && Kafka.get(coordinator, "joinFuture") == null) {
      throw NotYet.NOW;
    }
  }

  private void updateMetadata() {
    if ((boolean) Kafka.call(metadata, "updateRequested")) {
      Kafka.call(metadata, "updateWithCurrentRequestVersion", topic, false, clock.milliseconds());
    }
  }

  private void poll() {
    polling = true;
    try {
      Kafka.call(coordinator, "poll", clock.timer(0));
    } catch (NotYet stopped) {
      return;
    } catch (KafkaException fatal) {
      failed = true;
    } finally {
      polling = false;
      mayJoin = false;
    }
  }

  /** KafkaConsumer.poll up to the JoinGroup. */
  void join() {
    mayJoin = true;
    poll();
  }

  /** KafkaConsumer.poll sees the completed join. */
  void completeJoin() {
    if (!future().equals("Succeeded")) {
      throw new Broker.Refused("no join has completed");
    }
    poll();
  }

  void leave() {
    Kafka.wireCall(coordinator, "maybeLeaveGroup", type -> leaving(Kafka.raw(type)));
    pollNetwork();
  }

  private static Object leaving(Class<?> raw) {
    return raw == String.class ? "the consumer unsubscribed" : Kafka.getStatic(raw, "DEFAULT");
  }

  void requestRejoin() {
    Kafka.call(coordinator, "requestRejoin", "the application asked for it");
  }

  /** From the next join on, tell of these assignors. */
  void use(List<String> protocols) {
    assignors.clear();
    protocols.stream().sorted().forEach(name -> assignors.add(new NamedAssignor(name)));
  }

  void commit() {
    OffsetCommitCallback seen =
        (offsets, error) -> failed = failed || error instanceof FencedInstanceIdException;
    Kafka.call(
        coordinator, "commitOffsetsAsync", Map.of(new TopicPartition(TOPIC, 0), new OffsetAndMetadata(0)), seen);
    pollNetwork();
  }

  // ---- the heartbeat thread ------------------------------------------------------------------

  /** The interval is over; waits until the thread has sent its request. */
  void heartbeat() {
    synchronized (coordinator) {
      long wait = (long) Kafka.call(coordinator, "timeToNextHeartbeat", clock.milliseconds());
      if (Kafka.get(coordinator, "heartbeatThread") == null || wait > WAIT_MS) {
        throw new Broker.Refused("the member is in no generation to send heartbeats for");
      }
      clock.sleep(wait);
    }
    long until = System.currentTimeMillis() + WAIT_MS;
    while (!network.hasSent()) {
      if (System.currentTimeMillis() > until) {
        throw new Broker.Refused("the heartbeat thread sent nothing");
      }
      synchronized (coordinator) {
        Kafka.call(coordinator, "pollHeartbeat", clock.milliseconds()); // wakes the thread
      }
      Thread.yield();
    }
  }

  /** What the heartbeat thread must not come between. */
  Object monitor() {
    return coordinator;
  }

  // ---- the network ---------------------------------------------------------------------------

  void answer(long request, ByteBuffer frame) {
    network.answer(request, frame);
    pollNetwork();
    Kafka.call(coordinator, "invokeCompletedOffsetCommitCallbacks");
    letApplicationSee();
    findCoordinator();
    pollNetwork();
  }

  /** What was answered has its handler run, and what the handler sends goes out. */
  private void pollNetwork() {
    Kafka.call(client, "pollNoWakeup");
    Kafka.call(client, "pollNoWakeup");
  }

  /** The application learns at once what ended the heartbeat thread, or its join. */
  private void letApplicationSee() {
    try {
      Kafka.call(coordinator, "pollHeartbeat", clock.milliseconds());
    } catch (KafkaException fatal) {
      failed = true;
    }
    if (future().equals("Failed")) {
      poll();
    }
  }

  /** What either thread does next if the step cost the coordinator; the answer is there. */
  private void findCoordinator() {
    Kafka.call(coordinator, "ensureCoordinatorReady", clock.timer(0));
  }

  /** The process is gone. */
  void kill() {
    Object thread = Kafka.get(coordinator, "heartbeatThread");
    if (thread != null) {
      Kafka.call(thread, "close");
    }
  }

  // ---- what is seen --------------------------------------------------------------------------

  private String future() {
    Object future = Kafka.get(coordinator, "joinFuture");
    if (future == null) {
      return "None";
    }
    if (!(boolean) Kafka.call(future, "isDone")) {
      return "Pending";
    }
    return (boolean) Kafka.call(future, "failed") ? "Failed" : "Succeeded";
  }

  private byte[] assignment() {
    if (!future().equals("Succeeded")) {
      return new byte[0];
    }
    ByteBuffer value = ((ByteBuffer) Kafka.call(Kafka.get(coordinator, "joinFuture"), "value")).duplicate();
    byte[] bytes = new byte[value.remaining()];
    value.get(bytes);
    return bytes;
  }

  /** [state, generation, future, owned, flags, requests sent, requests in flight]. */
  void write(JsonGenerator out) throws IOException {
    Object generation = Kafka.get(coordinator, "generation");
    out.writeStartArray();
    out.writeString(Kafka.get(coordinator, "state").toString());
    out.writeNumber((int) Kafka.get(generation, "generationId"));
    out.writeString((String) Kafka.get(generation, "memberId"));
    out.writeString((String) Kafka.get(generation, "protocolName"));
    out.writeBoolean((boolean) Kafka.get(coordinator, "rejoinNeeded"));
    out.writeBoolean((boolean) Kafka.get(coordinator, "needsJoinPrepare"));
    out.writeString(future());
    out.writeBinary(assignment());
    out.writeBoolean((boolean) Kafka.get(coordinator, "isLeader"));
    out.writeStartArray();
    for (Object partition : Kafka.each(Kafka.call(subscriptions, "assignedPartitions"))) {
      out.writeNumber(((TopicPartition) partition).partition());
    }
    out.writeEndArray();
    out.writeBoolean(failed);
    MemberNetwork.write(out, network.sent());
    out.writeObject(network.inFlight());
    out.writeEndArray();
  }
}
