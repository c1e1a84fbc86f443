package kconform;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.server.common.DirectoryEventHandler;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import scala.Option;

/** What lives as long as a broker's process: LogManager, ReplicaManager, fetchers, metadata. */
final class BrokerProcess {
  final int id;
  /** The registration's: threads of the fetchers ask for it, too. */
  volatile long epoch;
  final Virtual.Clock clock;
  final Object logManager;
  final Object replicaManager;
  final Object fetchers;
  final Metadata metadata;
  private final Host host;
  private final Scheduler scheduler;
  /** Handlers of fetches that are read and not counted yet, by follower. */
  private final Map<Integer, Stepping> uncounted = new java.util.HashMap<>();

  /** What all processes of one broker share: its configuration, its disk. */
  static final class Host {
    final int id;
    final File directory;
    final Object config;
    final Metrics metrics = new Metrics();
    final Object quotas;
    final Object stats;
    /** A DirectoryEventHandler: whoever tells the controller of log directories. */
    Object directoryEvents = DirectoryEventHandler.NOOP;
    private final Map<String, Object> purgatories = new java.util.HashMap<>();
    private final Virtual.NoTimer deleteRecords = new Virtual.NoTimer();

    Host(int id, File directory) {
      this(id, directory, Map.of());
    }

    /** The same with settings of its own. */
    Host(int id, File directory, Map<String, String> settings) {
      this.id = id;
      this.directory = directory;
      config = config(id, directory, settings);
      quotas = quotas();
      stats = topicStats();
    }

    /** The KafkaConfig of a broker. */
    static Object config(int id, File directory) {
      return config(id, directory, Map.of());
    }

    private static Object config(int id, File directory, Map<String, String> settings) {
      Properties properties = properties(id, directory);
      properties.putAll(settings);
      return Kafka.callStatic(Kafka.type("kafka.server.KafkaConfig"), "fromProps", properties);
    }

    private static Properties properties(int id, File directory) {
      Properties properties = new Properties();
      Map.ofEntries(
              Map.entry("process.roles", "broker"),
              Map.entry("node.id", String.valueOf(id)),
              Map.entry("controller.quorum.voters", "1000@127.0.0.1:9000"),
              Map.entry("controller.listener.names", "CONTROLLER"),
              Map.entry("listeners", Metadata.LISTENER + "://127.0.0.1:" + (Metadata.PORT + id)),
              Map.entry("inter.broker.listener.name", Metadata.LISTENER),
              Map.entry(
                  "listener.security.protocol.map",
                  Metadata.LISTENER + ":PLAINTEXT,CONTROLLER:PLAINTEXT"),
              Map.entry("log.dirs", directory.getPath()),
              Map.entry("log.cleaner.enable", "false"),
              Map.entry("log.index.size.max.bytes", "1024"),
              // One record per fetch, as in the specification; an error is retried at once.
              Map.entry("replica.fetch.max.bytes", "1"),
              Map.entry("replica.fetch.response.max.bytes", "1"),
              Map.entry("replica.fetch.backoff.ms", "0"),
              Map.entry("replica.fetch.wait.max.ms", "0"),
              Map.entry("replica.lag.time.max.ms", String.valueOf(LAG_MS)))
          .forEach(properties::setProperty);
      return properties;
    }

    private Object quotas() {
      // One set for all: each starts threads of its own, and replication is not throttled here.
      if (allQuotas == null) {
        Function<java.lang.reflect.Type, Object> value =
            type -> {
              Class<?> raw = Kafka.raw(type);
              if (raw.isInstance(config)) {
                return config;
              }
              if (raw == String.class) {
                return "";
              }
              return raw == Time.class ? Time.SYSTEM : metrics;
            };
        allQuotas = Kafka.wireStatic(Kafka.type("QuotaFactory"), "instantiate", value);
      }
      return allQuotas;
    }

    private Object purgatory(String operation) {
      return purgatories.computeIfAbsent(
          operation,
          name ->
              Kafka.make(
                  Kafka.type("DelayedOperationPurgatory"),
                  name,
                  operation.equals("DelayedDeleteRecords") ? deleteRecords : new Virtual.NoTimer(),
                  id,
                  1000,
                  false,
                  false));
    }
  }

  /** Counters of what topics take. */
  static Object topicStats() {
    return Kafka.wire(
        Kafka.type("BrokerTopicStats"),
        type -> Kafka.raw(type) == Option.class ? Option.empty() : (Object) false);
  }

  static final long LAG_MS = 30_000;
  private static final Object COUNT = new Object();
  private static Object allQuotas;

  BrokerProcess(
      Host host,
      long epoch,
      List<Integer> brokers,
      MetadataVersion version,
      Function<Object, CompletableFuture<Object>> alterPartition) {
    this(
        host,
        epoch,
        brokers,
        version,
        alterPartition,
        new Virtual.Clock(),
        new Virtual.ImmediateScheduler());
  }

  /** The same with a clock that earlier processes have had, and whoever runs the tasks. */
  BrokerProcess(
      Host host,
      long epoch,
      List<Integer> brokers,
      MetadataVersion version,
      Function<Object, CompletableFuture<Object>> alterPartition,
      Virtual.Clock clock,
      Scheduler scheduler) {
    this.host = host;
    this.clock = clock;
    this.scheduler = scheduler;
    this.id = host.id;
    this.epoch = epoch;
    Object cache = metadataCache(id);
    LogDirFailureChannel failures = new LogDirFailureChannel(1);
    metadata = new Metadata(brokers, version, cache);
    logManager = Kafka.wireCall(Kafka.companion("kafka.log.LogManager"), "apply", type -> logManagerNeeds(type, cache, failures));
    Object alterPartitions =
        Kafka.play(
            Kafka.type("AlterPartitionManager"),
            (proxy, method, arguments) ->
                method.getName().equals("submit") ? alterPartition.apply(arguments[1]) : null);
    replicaManager =
        Kafka.wire(
            Kafka.type("kafka.server.ReplicaManager"),
            type -> replicaManagerNeeds(type, cache, failures, alterPartitions));
    fetchers = Kafka.get(replicaManager, "replicaFetcherManager");
  }

  static Object metadataCache(int id) {
    return Kafka.wire(
        Kafka.type("KRaftMetadataCache"),
        type ->
            Kafka.raw(type) == int.class
                ? (Object) id
                : (java.util.function.Supplier<Object>) BrokerProcess::kraftVersion);
  }

  private static Object kraftVersion() {
    return Kafka.callStatic(Kafka.type("org.apache.kafka.server.common.KRaftVersion"), "latestProduction");
  }

  private Object logManagerNeeds(java.lang.reflect.Type type, Object cache, Object failures) {
    Class<?> raw = Kafka.raw(type);
    if (raw == boolean.class) {
      return true; // keepPartitionMetadataFile: without it a log has no topic id
    }
    if (raw == java.util.Set.class) {
      return java.util.Set.of(); // initial offline directories
    }
    if (scala.collection.Seq.class.isAssignableFrom(raw)) {
      return List.of();
    }
    return common(raw, cache, failures);
  }

  private Object replicaManagerNeeds(
      java.lang.reflect.Type type, Object cache, Object failures, Object alterPartitions) {
    Class<?> raw = Kafka.raw(type);
    if (raw == Option.class) {
      return option(type);
    }
    if (raw == scala.Function0.class) {
      return (scala.Function0<Object>) () -> (Object) epoch;
    }
    if (raw == AtomicBoolean.class) {
      return new AtomicBoolean(false);
    }
    if (raw == DirectoryEventHandler.class) {
      return host.directoryEvents;
    }
    if (raw.getSimpleName().equals("ActionQueue")) {
      return Kafka.make(Kafka.type("DelayedActionQueue"));
    }
    for (Object known : List.of(host.quotas, alterPartitions, logManager, host.metrics)) {
      if (raw.isInstance(known)) {
        return known;
      }
    }
    return common(raw, cache, failures);
  }

  /** Purgatories of its own would have threads; there is nothing else that it must have. */
  private Object option(java.lang.reflect.Type type) {
    java.lang.reflect.Type of =
        ((java.lang.reflect.ParameterizedType) type).getActualTypeArguments()[0];
    if (of instanceof java.lang.reflect.ParameterizedType purgatory
        && Kafka.raw(of).getSimpleName().equals("DelayedOperationPurgatory")) {
      Class<?> operation = Kafka.raw(purgatory.getActualTypeArguments()[0]);
      return Option.apply(host.purgatory(operation.getSimpleName()));
    }
    return Option.empty();
  }

  private Object common(Class<?> raw, Object cache, Object failures) {
    if (raw == Scheduler.class) {
      return scheduler;
    }
    for (Object known : List.of(host.config, host.stats, clock, cache, failures)) {
      if (raw.isInstance(known)) {
        return known;
      }
    }
    throw new Kafka.Unsupported("nothing is known to give for a " + raw.getName());
  }

  // ---- fetches in two sections ---------------------------------------------------------------

  /**
   * Handles a follower's fetch up to its count, and tells whether it came to that point.
   *
   * <p>Partition.fetchRecords reads under leaderIsrUpdateLock and lets it go; to count the fetch,
   * updateFollowerFetchState first asks how many DeleteRecords wait, and takes the lock again then.
   */
  boolean read(int follower, Runnable handling) throws InterruptedException {
    Stepping handler = new Stepping(handling);
    host.deleteRecords.stop(handler);
    boolean stopped = handler.next(null) != null;
    host.deleteRecords.stop(null);
    if (stopped) {
      uncounted.put(follower, handler);
    }
    return stopped;
  }

  /** Lets a fetch that was read be counted and answered. */
  void count(int follower) throws InterruptedException {
    Stepping handler = uncounted.remove(follower);
    if (handler == null) {
      throw new Broker.Refused("no fetch of this follower is read and not counted");
    }
    handler.next(COUNT);
  }

  // ---- parts -------------------------------------------------------------------------------

  /** The partition, or null before the broker has heard of it. */
  Object partition() {
    return Kafka.orNull(Kafka.call(replicaManager, "onlinePartition", View.PARTITION));
  }

  /** The partition's log, or null if there is none on disk either. */
  Object log() {
    Object partition = partition();
    Object log = partition == null ? null : Kafka.orNull(Kafka.call(partition, "log"));
    return log != null ? log : Kafka.orNull(Kafka.call(logManager, "getLog", View.PARTITION, false));
  }

  boolean hasFailed(TopicPartition partition) {
    return (boolean) Kafka.call(Kafka.call(fetchers, "failedPartitions"), "contains", partition);
  }

  Object config() {
    return host.config;
  }

  /** The broker hears of the partition's registration (ReplicaManager.applyDelta). */
  void hear(PartitionRecord record) {
    MetadataDelta delta = metadata.partition(record);
    Object image = metadata.publish(delta);
    Kafka.call(replicaManager, "applyDelta", delta.topicsDelta(), image);
  }

  // ---- life --------------------------------------------------------------------------------

  /** Reads what is on the disk, as after a start; `highWatermark` is the checkpointed one. */
  void load(long highWatermark) {
    loadLogs();
    Object log = log();
    if (log != null) {
      Kafka.call(log, "updateHighWatermark", highWatermark);
    }
  }

  /** LogManager.startup without the tasks that it gives the scheduler. */
  void loadLogs() {
    Kafka.wireCall(
        logManager,
        "loadLogs",
        type -> {
          Class<?> raw = Kafka.raw(type);
          if (raw == Map.class || scala.collection.Map.class.isAssignableFrom(raw)) {
            return Map.of();
          }
          if (raw == scala.Function1.class) {
            return (scala.Function1<Object, Object>) log -> false;
          }
          return raw == Function.class
              ? (Function<Object, Boolean>) log -> false
              : Kafka.call(logManager, "currentDefaultConfig");
        });
  }

  /** Ends the process without a shutdown: files are closed as they are. */
  void kill() throws InterruptedException {
    for (int follower : List.copyOf(uncounted.keySet())) {
      count(follower); // the thread would wait for ever
    }
    Object log = log();
    if (log != null) {
      DiskLog.closeFiles(log);
    }
    unlock();
  }

  /** Gives up the locks of the log directories; Kafka gives up that of one that fails. */
  void unlock() {
    for (Object lock : Kafka.each(Kafka.get(logManager, "dirLocks"))) {
      if (((java.nio.channels.Channel) Kafka.get(lock, "channel")).isOpen()) {
        Kafka.call(lock, "destroy");
      }
    }
  }

  /** What a machine's failure leaves: the log below `logEnd`, and an older high watermark. */
  void crash(long logEnd, long highWatermark) throws IOException, InterruptedException {
    Kafka.call(logManager, "checkpointLogStartOffsets");
    Map<Path, Long> left = View.segmentSizesBelow(log(), logEnd);
    kill();
    for (Map.Entry<Path, Long> segment : left.entrySet()) {
      try (var file = java.nio.channels.FileChannel.open(segment.getKey(), java.nio.file.StandardOpenOption.WRITE)) {
        file.truncate(segment.getValue());
      }
    }
    Files.writeString(
        host.directory.toPath().resolve("replication-offset-checkpoint"),
        "0\n1\n" + Metadata.TOPIC + " 0 " + highWatermark + "\n");
  }
}
