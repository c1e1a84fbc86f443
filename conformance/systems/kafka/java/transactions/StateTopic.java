package kconform;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.BiFunction;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ProduceResponse.PartitionResponse;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * The partition of __transaction_state: the leader's UnifiedLog, and appends whose call-backs wait.
 *
 * <p>Each broker has a ReplicaManager of which the harness plays what TransactionStateManager calls.
 */
final class StateTopic {
  static final TopicPartition PARTITION =
      new TopicPartition(Topic.TRANSACTION_STATE_TOPIC_NAME, 0);

  private static final Class<?> REPLICA_MANAGER = Kafka.type("kafka.server.ReplicaManager");
  private static final Uuid TOPIC_ID = new Uuid(1, 3);
  private static final Set<String> PLAYED =
      Set.of("appendRecords", "getLog", "getLogConfig", "getLogEndOffset", "topicIdPartition");
  /** CompleteCommit and CompleteAbort, as TransactionState numbers them. */
  private static final Set<Byte> COMPLETES = Set.of((byte) 4, (byte) 5);

  /** An append; `answered`: its call-back has come in a later tenure. */
  static final class Append {
    final int broker;
    final int tenure;
    final long offset;
    final Object value;
    private final Runnable success;
    private final Runnable timeOut;
    private boolean answered;

    private Append(
        int broker, int tenure, long offset, Object value, Runnable success, Runnable timeOut) {
      this.broker = broker;
      this.tenure = tenure;
      this.offset = offset;
      this.value = value;
      this.success = success;
      this.timeOut = timeOut;
    }
  }

  private final File directory;
  private final Object log;
  private final List<Append> appends = new ArrayList<>();
  private int leader;
  private int tenure;

  StateTopic(File folder, int leader, Virtual.Clock clock) {
    directory = new File(folder, PARTITION.toString());
    log = DiskLog.load(directory, clock, true, false);
    this.leader = leader;
    tenure = 1;
  }

  void end() throws IOException {
    DiskLog.closeFiles(log);
    Utils.delete(directory);
  }

  // ---- what a coordinator sees -------------------------------------------------------------

  /** `completes` runs the append of a completion when an action says so. */
  Object replicaManager(int broker, java.util.function.Consumer<Runnable> completes) {
    BiFunction<String, Object[], Object> play =
        (name, arguments) ->
            switch (name) {
              case "appendRecords" -> {
                append(broker, arguments, completes);
                yield null;
              }
              case "getLogConfig" -> scala.Option.apply(Kafka.call(log, "config"));
              case "getLog" -> scala.Option.apply(log);
              case "getLogEndOffset" -> scala.Option.apply((Object) DiskLog.endOffset(log));
              default -> new TopicIdPartition(TOPIC_ID, PARTITION);
            };
    return Overridden.make(REPLICA_MANAGER, PLAYED, play);
  }

  /** The entry of one partition, and a call-back that takes a map with the partition's response. */
  private void append(int broker, Object[] arguments, java.util.function.Consumer<Runnable> completes) {
    Map.Entry<?, ?> entry = null;
    scala.Function1<Object, Object> callback = null;
    for (Object argument : arguments) {
      if (entry == null && argument instanceof scala.collection.Map<?, ?> map) {
        entry = Kafka.map(map).entrySet().iterator().next();
      } else if (callback == null && argument instanceof scala.Function1<?, ?> function) {
        callback = answering(function);
      }
    }
    Object key = entry.getKey();
    Object records = entry.getValue();
    scala.Function1<Object, Object> respond = callback;
    Object value = value(((Iterable<?>) Kafka.call(records, "records")).iterator().next());
    Runnable append = () -> append(broker, key, records, value, respond);
    if (value != null && COMPLETES.contains((byte) Kafka.call(value, "transactionStatus"))) {
      completes.accept(append);
    } else {
      append.run();
    }
  }

  @SuppressWarnings("unchecked")
  private static scala.Function1<Object, Object> answering(scala.Function1<?, ?> function) {
    return (scala.Function1<Object, Object>) function;
  }

  private void append(
      int broker, Object key, Object records, Object value, scala.Function1<Object, Object> respond) {
    if (broker != leader) {
      respond(respond, key, Errors.NOT_LEADER_OR_FOLLOWER);
      return;
    }
    Object info = Kafka.wireCall(log, "appendAsLeader", type -> appended(type, records));
    long offset = Kafka.number(Kafka.call(info, "firstOffset"));
    appends.add(
        new Append(
            broker,
            tenure,
            offset,
            value,
            () -> respond(respond, key, Errors.NONE),
            () -> respond(respond, key, Errors.REQUEST_TIMED_OUT)));
  }

  private Object appended(Type type, Object records) {
    Class<?> raw = Kafka.raw(type);
    if (raw == int.class) {
      return tenure;
    }
    if (raw == MetadataVersion.class) {
      return MetadataVersion.latestProduction();
    }
    if (raw.getSimpleName().equals("AppendOrigin")) {
      return Kafka.getStatic(raw, "COORDINATOR");
    }
    return raw.isInstance(records) ? records : Records.argument(raw);
  }

  private static final boolean ANSWERS_IN_SCALA = answersInScala();

  /** Until 4.3 the call-back takes a map of Scala's. */
  private static boolean answersInScala() {
    Method method =
        Arrays.stream(REPLICA_MANAGER.getMethods())
            .filter(each -> each.getName().equals("appendRecords"))
            .findFirst()
            .orElseThrow();
    ParameterizedType callback =
        Arrays.stream(method.getGenericParameterTypes())
            .filter(type -> Kafka.raw(type) == scala.Function1.class)
            .map(ParameterizedType.class::cast)
            .findFirst()
            .orElseThrow();
    return scala.collection.Map.class.isAssignableFrom(
        Kafka.raw(callback.getActualTypeArguments()[0]));
  }

  private static void respond(scala.Function1<Object, Object> callback, Object key, Errors error) {
    Map<Object, Object> responses = Map.of(key, new PartitionResponse(error));
    callback.apply(
        ANSWERS_IN_SCALA ? scala.jdk.javaapi.CollectionConverters.asScala(responses) : responses);
  }

  /** A TransactionLogValue; null of a tombstone. */
  private static Object value(Object stored) {
    ByteBuffer written = (ByteBuffer) Kafka.call(stored, "value");
    if (written == null) {
      return null;
    }
    ByteBuffer value = written.duplicate();
    short version = value.getShort();
    return Kafka.make(Kafka.type("TransactionLogValue"), new ByteBufferAccessor(value), version);
  }

  // ---- what replication and elections do ---------------------------------------------------

  void elect(int broker, int epoch, long end) {
    Kafka.call(log, "truncateTo", end);
    leader = broker;
    tenure = epoch;
  }

  void replicate(long offset) {
    DiskLog.advance(log, offset);
  }

  /** All replicas have the append: its call-back comes. */
  void acknowledge(int broker, int of) {
    Append append = take(broker, of);
    replicate(append.offset + 1);
    try {
      append.success.run();
    } catch (NullPointerException error) {
      if (append.value != null || of == tenure) {
        throw error;
      }
      appends.add(append);
      throw new Broker.Refused("the call-back of a tombstone, in a later tenure, throws " + error);
    }
  }

  /** The append times out; the record stays. */
  void fail(int broker) {
    take(broker, tenure).timeOut.run();
  }

  private Append take(int broker, int of) {
    for (Append append : appends) {
      if (append.broker == broker && append.tenure == of) {
        appends.remove(append);
        return append;
      }
    }
    throw new Broker.Refused("broker " + broker + " appends nothing in tenure " + of);
  }

  /**
   * What the broker has appended in earlier tenures is answered now, but for tombstones: they are
   * acknowledged by an action.
   */
  void callBackLate(int broker) {
    for (Append append : List.copyOf(appends)) {
      if (append.value != null && append.broker == broker && append.tenure < tenure && !append.answered) {
        append.answered = true;
        append.success.run();
      }
    }
  }

  // ---- what is seen ------------------------------------------------------------------------

  List<Append> appends() {
    return appends;
  }

  /** Null is a tombstone. */
  List<Object> values() {
    return DiskLog.batches(log).map(DiskLog::first).map(StateTopic::value).toList();
  }

  /** How often the id was forgotten. */
  int tombstones() {
    return (int) values().stream().filter(Objects::isNull).count();
  }

  long highWatermark() {
    return DiskLog.highWatermark(log);
  }
}
