package kconform;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One Kafka consumer of the classic protocol: its coordinator, its heartbeat thread, its positions.
 * The network is the harness's, and so is time.
 *
 * <p>The heartbeat thread is Kafka's own. It waits by the clock of the machine, and longer than a
 * test takes, so it has a turn when it is enabled, or when a command wakes it up. A step is over
 * when the thread waits again.
 */
final class ClassicConsumer {
  static final int BACKOFF_MS = 100_000;
  static final int INTERVAL_MS = 10 * BACKOFF_MS;
  static final int REBALANCE_TIMEOUT_MS = 20 * INTERVAL_MS;
  private static final int FOREVER_MS = Integer.MAX_VALUE;
  private static final long WAIT_MS = 10_000;
  /** An answer, what it sends next, what is given up for it, and the answers to these. */
  private static final int ROUNDS = 4;

  private static final String INTERNALS = "org.apache.kafka.clients.consumer.internals.";
  private static final Map<Map<String, Object>, ConsumerConfig> CONFIGS = new HashMap<>();

  /** Where metadata comes from: what a cluster shows if the consumer asks, null if it stays. */
  interface MetadataSource {
    MetadataResponse get(Object metadata);
  }

  final Virtual.Clock clock = new Virtual.Clock();
  final Application application = new Application();
  final ConsumerNetwork network;
  final Consumer<byte[], byte[]> consumer;
  final Object coordinator;
  final Object client;
  final Object subscriptions;
  final Object metadata;
  private final ReentrantLock lock;

  /** `settings` are its configuration beyond what all have; `policy` is auto.offset.reset. */
  ClassicConsumer(
      Map<String, Object> settings,
      String policy,
      ConsumerPartitionAssignor assignor,
      Function<ConsumerNetwork.Flight, AbstractResponse> answersAtOnce,
      MetadataSource source) {
    ConsumerConfig config = CONFIGS.computeIfAbsent(settings, ClassicConsumer::config);
    subscriptions = Kafka.wire(type("SubscriptionState"), one -> part(Kafka.raw(one), policy));
    metadata =
        Kafka.make(
            type("ConsumerMetadata"),
            config, subscriptions, Member.logContext(), new ClusterResourceListeners());
    network = new ConsumerNetwork(clock, application, answersAtOnce, () -> update(source));
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    @SuppressWarnings("unchecked")
    Consumer<byte[], byte[]> made =
        (Consumer<byte[], byte[]>) Kafka.make(
            kind(),
            Member.logContext(), clock, config, bytes, bytes,
            network.client(), subscriptions, metadata, List.of(assignor));
    consumer = made;
    coordinator = Kafka.get(consumer, "coordinator");
    client = Kafka.get(consumer, "client");
    lock = (ReentrantLock) Kafka.get(client, "lock");
    application.use(lock);
  }

  static Class<?> type(String name) {
    return Kafka.type(INTERNALS + name);
  }

  /** LegacyKafkaConsumer in 3.8. */
  private static Class<?> kind() {
    String newer = "ClassicKafkaConsumer";
    return type(Kafka.exists(INTERNALS + newer) ? newer : "LegacyKafkaConsumer");
  }

  private static Object part(Class<?> raw, String policy) {
    return raw == Kafka.type("LogContext") ? Member.logContext() : Kafka.getStatic(raw, policy);
  }

  private static ConsumerConfig config(Map<String, Object> settings) {
    Map<String, Object> values = new HashMap<>(settings);
    values.put("bootstrap.servers", "127.0.0.1:9092");
    values.put("group.id", Groups.GROUP);
    values.put("session.timeout.ms", FOREVER_MS);
    values.put("heartbeat.interval.ms", FOREVER_MS - 1);
    values.put("max.poll.interval.ms", REBALANCE_TIMEOUT_MS);
    values.put("request.timeout.ms", FOREVER_MS);
    values.put("default.api.timeout.ms", FOREVER_MS);
    values.put("auto.commit.interval.ms", INTERVAL_MS);
    values.put("retry.backoff.ms", (long) BACKOFF_MS);
    // Calls that wait try again at once: the specifications have no such waits.
    values.put("retry.backoff.max.ms", 0L);
    values.put("key.deserializer", ByteArrayDeserializer.class);
    values.put("value.deserializer", ByteArrayDeserializer.class);
    return new ConsumerConfig(values);
  }

  private boolean update(MetadataSource source) {
    MetadataResponse response = source.get(metadata);
    if (response != null) {
      update(response);
    }
    return response != null;
  }

  /** Metadata comes. */
  void update(MetadataResponse response) {
    Kafka.call(metadata, "updateWithCurrentRequestVersion", response, false, clock.milliseconds());
  }

  // ---- what comes --------------------------------------------------------------------------

  /** What has arrived is called back, in the application's call that waits, or else here. */
  void come() {
    if (application.standsStill()) {
      application.goOn();
    } else {
      callBack();
    }
  }

  /** As the heartbeat thread does. */
  void callBack() {
    for (int i = 0; i < ROUNDS; i++) {
      Kafka.call(client, "pollNoWakeup");
    }
  }

  /** Whether the heartbeat thread is awake in its generation. */
  boolean heartbeats() {
    return heartbeatThread().equals("enabled");
  }

  /** none, disabled, enabled, failed. */
  String heartbeatThread() {
    Object thread = Kafka.get(coordinator, "heartbeatThread");
    if (thread == null) {
      return "none";
    }
    String newer = "isFailed"; // from 4.1 on
    if ((boolean) Kafka.call(thread, Kafka.hasMethod(thread, newer) ? newer : "hasFailed")) {
      return "failed";
    }
    Object enabled = Kafka.get(thread, "enabled"); // an AtomicBoolean from 4.1 on
    return Boolean.parseBoolean(enabled.toString()) ? "enabled" : "disabled";
  }

  /** The heartbeat thread has a turn. */
  void wakeHeartbeatThread() {
    synchronized (coordinator) {
      coordinator.notifyAll();
    }
    rest();
  }

  /** Waits until the heartbeat thread waits. */
  void rest() {
    Thread thread = (Thread) Kafka.get(coordinator, "heartbeatThread");
    long until = System.currentTimeMillis() + WAIT_MS;
    while (thread != null && !isAtRest(thread)) {
      if (System.currentTimeMillis() > until) {
        throw new IllegalStateException("the heartbeat thread does not come to rest");
      }
      Thread.yield();
    }
  }

  private boolean isAtRest(Thread thread) {
    return switch (thread.getState()) {
      case TERMINATED -> true;
      case WAITING, TIMED_WAITING -> !lock.hasQueuedThreads();
      case BLOCKED -> application.standsIn("ensureCoordinatorReady") || application.standsIn("close");
      default -> false;
    };
  }

  /** The process is gone. */
  void end() {
    application.end();
    Object thread = Kafka.get(coordinator, "heartbeatThread");
    if (thread != null) {
      Kafka.call(thread, "close");
    }
  }
}
