package kconform;

import java.io.File;
import java.lang.reflect.Type;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.NetworkClient;
import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.AddPartitionsToTxnResponseData.AddPartitionsToTxnResult;
import org.apache.kafka.common.message.WriteTxnMarkersRequestData.WritableTxnMarker;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AddPartitionsToTxnResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.requests.WriteTxnMarkersRequest;
import org.apache.kafka.common.requests.WriteTxnMarkersResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.util.RequestAndCompletionHandler;
import org.apache.kafka.server.util.Scheduler;

/** A broker that may coordinate the id: coordinator, state manager and marker channel, no threads. */
final class TransactionBroker {
  static final String ID = "t";
  static final int TIMEOUT_MS = 1000;
  private static final String PACKAGE = "kafka.coordinator.transaction.";
  private static final int LARGE = 1 << 16;
  private static final short WRITE_TXN_MARKERS = 1;
  private static final int FENCE = 7; // PrepareEpochFence, as TransactionState numbers it
  private static final Metrics METRICS = new Metrics();

  /** What EndTxn was answered. */
  record End(Errors error, int epoch) {}

  /** A request with markers on its way, and who takes the answer. */
  record Sent(WritableTxnMarker marker, int partition, long start, RequestCompletionHandler handler) {}

  private final StateTopic topic;
  private final Virtual.Clock clock;
  private final int version;
  private final ProducerEpochs epochs;
  private final SteppingLock lock = new SteppingLock();
  private final Object leaders;
  private final Object cache;
  private final Object manager;
  private final Object channel;
  private final Object coordinator;
  final Map<String, Integer> producerIds = new LinkedHashMap<>();
  final Map<Integer, End> ends = new LinkedHashMap<>();
  private final Deque<Runnable> loads = new ArrayDeque<>();
  private Runnable completion;
  private Runnable expiration;
  private Stepping fence;

  /** `leaders` is a KRaftMetadataCache. */
  TransactionBroker(
      int id,
      File folder,
      StateTopic topic,
      Virtual.Clock clock,
      int version,
      ProducerEpochs epochs,
      Object leaders) {
    this.topic = topic;
    this.leaders = leaders;
    this.clock = clock;
    this.version = version;
    this.epochs = epochs;
    cache = metadataCache();
    Object config = Configs.kafka(folder);
    Object replicas = topic.replicaManager(id, append -> completion = append);
    Object network =
        Overridden.make(NetworkClient.class, Set.of("wakeup"), (name, arguments) -> null);
    List<Object> known =
        new ArrayList<>(List.of(clock, METRICS, config, cache, replicas, network, scheduler()));
    manager = make("TransactionStateManager", id, known);
    Kafka.set(manager, "stateLock", lock);
    Kafka.call(manager, "startup", (scala.Function0<Object>) () -> 1, true);
    known.add(manager);
    channel = make("TransactionMarkerChannelManager", id, known);
    known.add(channel);
    coordinator = make("TransactionCoordinator", id, known);
    ((AtomicBoolean) Kafka.get(coordinator, "isActive")).set(true);
  }

  private Object make(String name, int id, List<Object> known) {
    return Kafka.wire(Kafka.type(PACKAGE + name), type -> argument(Kafka.raw(type), id, known));
  }

  private Object argument(Class<?> raw, int id, List<Object> known) {
    if (raw == int.class) {
      return id;
    }
    if (raw == scala.Function0.class) {
      return (scala.Function0<Object>) this::producerIds;
    }
    return switch (raw.getSimpleName()) {
      case "TransactionConfig" -> Configs.transaction(raw);
      case "LogContext" -> Kafka.make(raw, "");
      default ->
          known.stream()
              .filter(raw::isInstance)
              .findFirst()
              .orElseThrow(() -> new Kafka.Unsupported("nothing is known to give for a " + raw));
    };
  }

  /** Configurations are read once: each checks hundreds of values. */
  private static final class Configs {
    private static Object kafka;
    private static Object transaction;

    static Object kafka(File folder) {
      if (kafka == null) {
        kafka = BrokerProcess.Host.config(1, folder);
      }
      return kafka;
    }

    /** Times and sizes that are never reached; no two-phase commit. */
    static Object transaction(Class<?> type) {
      if (transaction == null) {
        transaction =
            Kafka.wire(
                type,
                parameter ->
                    switch (parameter.getTypeName()) {
                      case "int" -> (Object) LARGE;
                      case "short" -> (short) 1;
                      default -> false;
                    });
      }
      return transaction;
    }
  }

  /** The ids of the one producer. */
  private Object producerIds() {
    Class<?> type =
        Kafka.type(
            Kafka.exists("org.apache.kafka.coordinator.transaction.ProducerIdManager")
                ? "org.apache.kafka.coordinator.transaction.ProducerIdManager"
                : PACKAGE + "ProducerIdManager");
    return Kafka.play(
        type,
        (proxy, method, arguments) ->
            method.getReturnType() == long.class
                ? (Object) epochs.generate()
                : new scala.util.Success<>(epochs.generate()));
  }

  /** The release's own cache says who leads a partition. */
  private Object metadataCache() {
    Class<?> type =
        Kafka.type(
            Kafka.exists("kafka.server.MetadataCache")
                ? "kafka.server.MetadataCache"
                : "org.apache.kafka.metadata.MetadataCache");
    return Kafka.play(
        type,
        (proxy, method, arguments) ->
            switch (method.getName()) {
              case "getPartitionLeaderEndpoint" -> Kafka.call(leaders, method.getName(), arguments);
              case "features" -> features(method.getReturnType());
              case "metadataVersion" -> MetadataVersion.latestProduction(); // up to 4.1
              default -> throw new Kafka.Unsupported("nothing is known of " + method);
            });
  }

  private Object features(Class<?> type) {
    Map<String, Short> levels = Map.of("transaction.version", (short) version);
    MetadataVersion metadata = MetadataVersion.latestProduction();
    if (Kafka.hasStaticMethod(type, "of")) { // from 4.2 on
      return Kafka.callStatic(type, "of", metadata, levels, 0L);
    }
    return Kafka.wire(
        type,
        parameter ->
            switch (Kafka.raw(parameter).getSimpleName()) {
              case "MetadataVersion" -> metadata;
              case "Map" -> levels;
              case "long" -> 0L;
              default -> (Object) true; // KRaft
            });
  }

  private Scheduler scheduler() {
    return new Virtual.Threadless() {
      @Override
      public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
        if (name.equals("transactionalId-expiration")) {
          expiration = task;
        } else {
          loads.add(task); // the state manager schedules nothing else
        }
        return null;
      }
    };
  }

  // ---- elections ---------------------------------------------------------------------------

  /** The broker leads; what it has promised in an earlier tenure is forgotten. */
  void elect(int tenure) {
    producerIds.clear();
    ends.clear();
    completion = null;
    Kafka.call(coordinator, "onElection", StateTopic.PARTITION.partition(), tenure);
    endFence(); // finds that the partition is being loaded
  }

  /**
   * Reads the log, after the loads of earlier elections; then comes what was delayed since the
   * broker led before.
   */
  void load(int id) {
    if (loads.isEmpty()) {
      throw new Broker.Refused("nothing is to be loaded");
    }
    while (!loads.isEmpty()) {
      loads.remove().run();
    }
    topic.callBackLate(id);
  }

  /**
   * The id is known, and its first epoch is the next to be given. What an append that has failed
   * leaves behind is that without an epoch; its record is cut.
   */
  void begin(int id) {
    initProducerId("");
    topic.fail(id);
    topic.elect(id, 1, 0);
    Kafka.set(metadata(), "producerEpoch", (short) (epochs.epoch(0) - 1));
  }

  // ---- requests ----------------------------------------------------------------------------

  /** The methods' last arguments: a call-back, and what memory a request may use. */
  private Object argument(Type type, Object callback, List<Object> given) {
    Class<?> raw = Kafka.raw(type);
    if (scala.Function1.class == raw || scala.Function3.class == raw) {
      return callback;
    }
    return switch (raw.getSimpleName()) {
      case "RequestLocal" -> Kafka.callStatic(raw, "withThreadConfinedCaching");
      case "TransactionVersion" -> Kafka.callStatic(raw, "fromFeatureLevel", (short) version);
      case "boolean" -> false; // two-phase commit
      case "Option" -> scala.Option.empty(); // the producer id and epoch that are expected
      default -> given.remove(0);
    };
  }

  private void handle(String method, Object callback, Object... arguments) {
    List<Object> given = new ArrayList<>(List.of(arguments));
    Kafka.wireCall(coordinator, method, type -> argument(type, callback, given));
  }

  void initProducerId(String client) {
    handle("handleInitProducerId", initialized(client), ID, TIMEOUT_MS);
  }

  private scala.Function1<Object, Object> initialized(String client) {
    return result -> {
      if (Kafka.call(result, "error") == Errors.NONE) {
        producerIds.put(client, epochs.numberOf(result));
      }
      return scala.runtime.BoxedUnit.UNIT;
    };
  }

  private static Object ignore(Object ignored) {
    return scala.runtime.BoxedUnit.UNIT;
  }

  /** Refused, with the error's name, if the answer comes at once. */
  void addPartition(int partition, int epoch) {
    List<Object> answers = new ArrayList<>();
    handle(
        "handleAddPartitionsToTransaction",
        (scala.Function1<Object, Object>)
            error -> {
              answers.add(error);
              return scala.runtime.BoxedUnit.UNIT;
            },
        ID,
        epochs.id(epoch),
        epochs.epoch(epoch),
        Set.of(topicPartition(partition)));
    if (!answers.isEmpty()) {
      throw new Broker.Refused(answers.get(0).toString());
    }
  }

  /** The next look for ids that nobody uses, of the scheduler. */
  void expireIds() {
    expiration.run();
  }

  /** The error's name. */
  String verifyPartition(int partition, int epoch) {
    Errors[] answer = new Errors[1];
    scala.Function1<Object, Object> callback =
        result -> {
          var results = ((AddPartitionsToTxnResult) result).topicResults();
          answer[0] =
              AddPartitionsToTxnResponse.errorsForTransaction(results).get(topicPartition(partition));
          return scala.runtime.BoxedUnit.UNIT;
        };
    handle(
        "handleVerifyPartitionsInTransaction",
        callback,
        ID,
        epochs.id(epoch),
        epochs.epoch(epoch),
        Set.of(topicPartition(partition)));
    return answer[0].name();
  }

  /** EndTxn; before 4.0 the answer has no epoch. */
  void endTransaction(int transaction, int epoch, boolean commits) {
    Object callback =
        Kafka.exists("org.apache.kafka.coordinator.transaction.ProducerIdManager")
            ? (scala.Function3<Object, Object, Object, Object>)
                (error, producerId, newEpoch) ->
                    ended(transaction, error, epochs.number((long) producerId, (short) newEpoch))
            : (scala.Function1<Object, Object>) error -> ended(transaction, error, -1);
    handle(
        "handleEndTransaction",
        callback,
        ID,
        epochs.id(epoch),
        epochs.epoch(epoch),
        commits ? TransactionResult.COMMIT : TransactionResult.ABORT);
  }

  private Object ended(int transaction, Object error, int epoch) {
    ends.put(transaction, new End((Errors) error, epoch));
    return scala.runtime.BoxedUnit.UNIT;
  }

  // ---- the fence, in two sections ----------------------------------------------------------

  /** An instance asks for an epoch, or the time of the transaction is over. */
  void beginFence(String client) throws InterruptedException {
    Stepping step =
        new Stepping(client == null ? this::abortTimedOut : () -> initProducerId(client));
    Object metadata = metadata();
    lock.stop(step, () -> metadata != null && pendingState(metadata) == FENCE);
    boolean stopped = step.next(null) != null;
    lock.stop(null, null);
    if (stopped) {
      fence = step;
    }
  }

  private void abortTimedOut() {
    Object ended =
        Kafka.exists("org.apache.kafka.coordinator.transaction.ProducerIdManager")
            ? (scala.Function3<Object, Object, Object, Object>) (error, id, epoch) -> ignore(error)
            : (scala.Function1<Object, Object>) TransactionBroker::ignore;
    Kafka.call(
        coordinator, "abortTimedOutTransactions", (scala.Function1<Object, Object>) id -> ended);
  }

  /** The fence goes on, if there is one. */
  void endFence() {
    Stepping step = fence;
    fence = null;
    try {
      if (step != null) {
        step.next(this);
      }
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
    }
  }

  // ---- markers -----------------------------------------------------------------------------

  /** What the sender's thread would send now. */
  List<Sent> generateRequests() {
    List<Sent> sent = new ArrayList<>();
    for (Object each : Kafka.each(Kafka.call(channel, "generateRequests"))) {
      RequestAndCompletionHandler request = (RequestAndCompletionHandler) each;
      WriteTxnMarkersRequest.Builder builder = (WriteTxnMarkersRequest.Builder) request.request;
      long start = clock.milliseconds();
      Object metadata = metadata();
      if (metadata != null) {
        start = Kafka.number(Kafka.call(metadata, "txnStartTimestamp"));
      }
      for (WritableTxnMarker marker : builder.data.markers()) {
        sent.add(new Sent(marker, request.destination.id(), start, request.handler));
      }
    }
    return sent;
  }

  /** The leader of the partition has written the marker. */
  void completeMarker(Sent sent) {
    Map<Long, Map<TopicPartition, Errors>> errors =
        Map.of(
            sent.marker.producerId(), Map.of(topicPartition(sent.partition), Errors.NONE));
    RequestHeader header =
        new RequestHeader(ApiKeys.WRITE_TXN_MARKERS, WRITE_TXN_MARKERS, "", 0);
    sent.handler.onComplete(
        new ClientResponse(
            header, null, "", 0, 0, false, null, null, new WriteTxnMarkersResponse(errors)));
  }

  /** The append that completes the transaction. */
  void complete() {
    Runnable append = completion;
    if (append == null) {
      throw new Broker.Refused("nothing is to be completed");
    }
    completion = null;
    append.run();
  }

  // ---- what is seen ------------------------------------------------------------------------

  /** Whether the partition of the id is loaded. */
  boolean serves() {
    return Kafka.call(manager, "getTransactionState", ID) instanceof scala.util.Right<?, ?>;
  }

  /** The id's TransactionMetadata; null if it is not loaded here, or not known. */
  Object metadata() {
    Object known = Kafka.call(manager, "getTransactionState", ID);
    if (!(known instanceof scala.util.Right<?, ?> right)) {
      return null;
    }
    Object of = Kafka.orNull(right.value());
    return of == null ? null : Kafka.call(of, "transactionMetadata");
  }

  /** The number of the state that is about to be entered; -1 if there is none. */
  static int pendingState(Object metadata) {
    Object pending = Kafka.orNull(Kafka.call(metadata, "pendingState"));
    return pending == null ? -1 : (byte) Kafka.call(pending, "id");
  }

  /** Whether the decided transaction waits for its markers, or for the append that completes it. */
  boolean isCompleting() {
    return completion != null
        || ((Map<?, ?>) Kafka.get(channel, "transactionsWithPendingMarkers")).containsKey(ID);
  }

  /** Lets no thread wait for ever. */
  void end() {
    endFence();
  }

  static TopicPartition topicPartition(int partition) {
    return new TopicPartition("p" + partition, 0);
  }

  static int partition(String topic) {
    return Integer.parseInt(topic.substring(1));
  }
}
