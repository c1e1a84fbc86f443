package kconform;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.FetchSessionHandler;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * One ReplicaFetcherThread, real and never started: the harness calls its steps.
 *
 * <p>What it would send over the network, `Link` hands to whoever steps it. Only the out-of-range
 * reset sends from the middle of a step (ListOffsets): there the step runs in a thread of its own
 * and stands still until the answer is given.
 */
final class Fetcher {
  final int leader;
  final BrokerProcess follower;
  final Object thread;
  private final Object endPoint;
  private final Link link = new Link();

  /** What a step of the fetcher thread came to: its end, or a question to the leader. */
  record Asked(ListOffsetsRequest request) {}

  Fetcher(BrokerProcess follower, int leader, MetadataVersion version) {
    this.follower = follower;
    this.leader = leader;
    Object broker =
        Kafka.make(Kafka.type("BrokerEndPoint"), leader, "127.0.0.1", Metadata.PORT + leader);
    Object sender = Kafka.play(Kafka.type("kafka.server.BlockingSend"), link.of(broker));
    scala.Function0<Object> versions = () -> version;
    scala.Function0<Object> brokerEpoch = () -> (Object) follower.epoch;
    endPoint =
        Kafka.make(
            Kafka.type("kafka.server.RemoteLeaderEndPoint"),
            "",
            sender,
            Kafka.make(FetchSessionHandler.class, Kafka.make(Kafka.type("LogContext")), leader),
            follower.config(),
            follower.replicaManager,
            Unthrottled.QUOTA,
            versions,
            brokerEpoch);
    thread = thread(versions);
  }

  /** Up to 4.0 the thread itself asks for the metadata version too. */
  private Object thread(Object versions) {
    Class<?> type = Kafka.type("kafka.server.ReplicaFetcherThread");
    Object failed = Kafka.call(follower.fetchers, "failedPartitions");
    boolean asks = type.getDeclaredConstructors()[0].getParameterCount() == 8;
    String name = "fetcher-" + follower.id + "-" + leader;
    return asks
        ? Kafka.make(
            type, name, endPoint, follower.config(), failed, follower.replicaManager, Unthrottled.QUOTA, "", versions)
        : Kafka.make(
            type, name, endPoint, follower.config(), failed, follower.replicaManager, Unthrottled.QUOTA, "");
  }

  /** The fetcher manager finds this thread where it would start one. */
  void install() {
    Object key = Kafka.make(Kafka.type("kafka.server.BrokerIdAndFetcherId"), leader, 0);
    Kafka.call(Kafka.call(follower.fetchers, "fetcherThreadMap"), "put", key, thread);
  }

  /** The partition's state in this thread, or null; read without the lock, which may be held. */
  Object state() {
    return Kafka.call(Kafka.get(thread, "partitionStates"), "stateValue", View.PARTITION);
  }

  // ---- the thread's steps --------------------------------------------------------------------

  /** What maybeTruncate asks for: (partitions with an epoch, partitions without). */
  private scala.Tuple2<?, ?> truncating() {
    return (scala.Tuple2<?, ?>) Kafka.call(thread, "fetchTruncatingPartitions");
  }

  /** The question for OffsetsForLeaderEpoch, a Scala map, or null. */
  Object epochRequest() {
    Object partitions = truncating()._1();
    return ((scala.collection.Map<?, ?>) partitions).isEmpty() ? null : partitions;
  }

  /** Partitions without an epoch, to be truncated to the high watermark, or null. */
  Object withoutEpoch() {
    Object partitions = truncating()._2();
    return ((scala.collection.Set<?>) partitions).isEmpty() ? null : partitions;
  }

  void truncateToHighWatermark(Object partitions) {
    Kafka.call(thread, "truncateToHighWatermark", partitions);
  }

  /** The first half of maybeFetch; a ReplicaFetch, or null if nothing is ready. */
  Object buildFetch() {
    ReentrantLock lock = (ReentrantLock) Kafka.call(thread, "partitionMapLock");
    lock.lock();
    try {
      Object states = Kafka.get(thread, "partitionStates");
      Object built = Kafka.call(endPoint, "buildFetch", copy(Kafka.call(states, "partitionStateMap")));
      return Kafka.orNull(Kafka.call(built, "result"));
    } finally {
      lock.unlock();
    }
  }

  private static Map<?, ?> copy(Object map) {
    return new LinkedHashMap<>((Map<?, ?>) map);
  }

  /** truncateToEpochEndOffsets with this answer; null: it is lost. */
  void truncateToEpochEndOffsets(Object asked, AbstractResponse answer) {
    link.answer = answer;
    Kafka.call(thread, "truncateToEpochEndOffsets", asked);
  }

  /** processFetchRequest with this answer, in one go; null: it is lost. */
  void processFetchRequest(Object fetch, AbstractResponse answer) {
    link.answer = answer;
    Kafka.call(
        thread, "processFetchRequest", Kafka.call(fetch, "partitionData"), Kafka.call(fetch, "fetchRequest"));
  }

  /** The same where the step will ask the leader in its middle: the question that it stops at. */
  Asked processUntilAsked(Object fetch, AbstractResponse answer) throws InterruptedException {
    link.stepping = new Stepping(() -> processFetchRequest(fetch, answer));
    return asked(link.stepping.next(null));
  }

  /** Goes on with the answer to that question (null: it is lost), to the next one or the end. */
  Asked resume(AbstractResponse answer) throws InterruptedException {
    return asked(link.stepping.next(answer == null ? Link.LOST : answer));
  }

  private static Asked asked(Object question) {
    return question == null ? null : new Asked((ListOffsetsRequest) question);
  }

  // ---- the thread's own loop -----------------------------------------------------------------

  /** What one doWork did: what it asked the leader for, in order, and whether it waited. */
  record Turn(List<String> asked, boolean waited) {}

  /**
   * One turn of the loop as the thread runs it (doWork: maybeTruncate, then maybeFetch).
   *
   * <p>The leader answers at once; null: every message is lost. Where the thread would wait for the
   * partitions to change, it goes on, and that is told.
   */
  Turn doWork(BrokerProcess from) {
    if (waits == null) {
      waits = new Waits();
      Kafka.set(thread, "fetchBackOffMs", BACK_OFF_MS);
      Kafka.set(thread, "partitionMapCond", Kafka.play(Condition.class, waits));
    }
    List<String> asked = new ArrayList<>();
    waits.count = 0;
    link.live =
        request -> {
          asked.add(Leader.nameOf(request));
          return from == null ? null : Leader.answer(from, request);
        };
    try {
      Kafka.call(thread, "doWork");
    } finally {
      link.live = null;
    }
    return new Turn(asked, waits.count > 0);
  }

  /** As if the partition's back-off had passed: Kafka takes its time from the machine's clock. */
  void endBackOff() {
    Object ready = Kafka.with(state(), "delay", Optional.empty());
    if (Kafka.has(ready, "dueMs")) {
      ready = Kafka.with(ready, "dueMs", Optional.empty());
    }
    Kafka.call(Kafka.get(thread, "partitionStates"), "update", View.PARTITION, ready);
  }

  /** Long enough never to pass by itself. */
  private static final int BACK_OFF_MS = 3_600_000;

  private Waits waits;

  /** partitionMapCond of a thread that must not stand still. */
  private static final class Waits implements java.lang.reflect.InvocationHandler {
    int count;

    @Override
    public Object invoke(Object proxy, java.lang.reflect.Method method, Object[] arguments) {
      if (!method.getName().equals("await")) {
        return null; // signalAll
      }
      count++;
      return false;
    }
  }

  // ---- network -----------------------------------------------------------------------------

  /** The connection to the leader: gives the answer that the harness has laid ready. */
  private static final class Link {
    static final Object LOST = new Object();
    AbstractResponse answer;
    Stepping stepping;
    /** While the loop runs: answers each request, null where the message is lost. */
    Function<AbstractRequest, AbstractResponse> live;

    java.lang.reflect.InvocationHandler of(Object broker) {
      return (proxy, method, arguments) ->
          switch (method.getName()) {
            case "brokerEndPoint" -> broker;
            case "sendRequest" -> send((AbstractRequest.Builder<?>) arguments[0]);
            default -> null; // initiateClose, close
          };
    }

    private ClientResponse send(AbstractRequest.Builder<?> builder) throws Exception {
      AbstractRequest request = builder.build();
      AbstractResponse response = live == null ? answer : live.apply(Trip.asSent(builder));
      answer = null;
      if (stepping != null && stepping.isRunning() && request instanceof ListOffsetsRequest) {
        Object given = stepping.ask(request);
        response = given == LOST ? null : (AbstractResponse) given;
      }
      if (response == null) {
        throw new IOException("the request or its answer was lost");
      }
      RequestHeader header = new RequestHeader(request.apiKey(), request.version(), "", 0);
      return new ClientResponse(header, null, "", 0, 0, false, null, null, response);
    }
  }

  /** A quota that throttles nothing. */
  private static final class Unthrottled {
    static final Object QUOTA =
        Kafka.play(
            Kafka.type("ReplicaQuota"),
            (proxy, method, arguments) -> method.getReturnType() == boolean.class ? false : null);
  }

  static Object unthrottled() {
    return Unthrottled.QUOTA;
  }
}
