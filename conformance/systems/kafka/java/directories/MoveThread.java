package kconform;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.kafka.common.protocol.Errors;

/**
 * One ReplicaAlterLogDirsThread, real and never started: the harness calls its steps.
 *
 * <p>Its LocalLeaderEndPoint is asked when an action says so; the thread then finds the answer where
 * it would have asked.
 */
final class MoveThread {
  /** A call of LocalLeaderEndPoint: what is asked, and the answer once it was given. */
  private static final class Call {
    final boolean isFetch;
    final Object asked; // a ReplicaFetch, or partitions with the epochs that are asked for
    Object answer;
    boolean overtaken;
    List<Integer> records = List.of(); // what the answer had when it was given: it is read off the file

    Call(boolean isFetch, Object asked) {
      this.isFetch = isFetch;
      this.asked = asked;
    }
  }

  private static final Object LOCAL = Kafka.make(Kafka.type("BrokerEndPoint"), DirectoryBroker.ID, "localhost", -1);

  private final Object manager;
  private Object thread;
  private Object endPoint;
  private Call call;

  MoveThread(Object manager) {
    this.manager = manager;
  }

  /** The manager finds this thread where it would start one. */
  void install() {
    if (thread != null && installed() == thread) {
      return;
    }
    thread = Kafka.call(manager, "createFetcherThread", 0, LOCAL);
    endPoint = Kafka.get(thread, "leader");
    Object real = endPoint;
    Object played =
        Kafka.play(
            Kafka.fieldType(thread, "leader"),
            (proxy, method, arguments) ->
                switch (method.getName()) {
                  case "fetch", "fetchEpochEndOffsets" -> call.answer;
                  default -> Kafka.call(real, method.getName(), arguments == null ? new Object[0] : arguments);
                });
    Kafka.set(thread, "leader", played);
    Kafka.call(Kafka.call(manager, "fetcherThreadMap"), "put", key(), thread);
  }

  /** The thread that the manager has, or null: it ends those that follow nothing. */
  Object installed() {
    return Kafka.orNull(Kafka.call(Kafka.call(manager, "fetcherThreadMap"), "get", key()));
  }

  private static Object key() {
    return Kafka.make(Kafka.type("kafka.server.BrokerIdAndFetcherId"), DirectoryBroker.ID, 0);
  }

  // ---- steps -------------------------------------------------------------------------------

  void truncateToHighWatermark() {
    idle();
    Object partitions = truncating()._2();
    if (((scala.collection.Set<?>) partitions).isEmpty()) {
      throw new Broker.Refused("no log without epochs is to be truncated");
    }
    Kafka.call(thread, "truncateToHighWatermark", partitions);
  }

  private scala.Tuple2<?, ?> truncating() {
    return (scala.Tuple2<?, ?>) Kafka.call(thread, "fetchTruncatingPartitions");
  }

  void sendEpochRequest() {
    idle();
    Object partitions = truncating()._1();
    if (((scala.collection.Map<?, ?>) partitions).isEmpty()) {
      throw new Broker.Refused("no log with epochs is to be truncated");
    }
    call = new Call(false, partitions);
  }

  void sendFetch() {
    idle();
    ReentrantLock lock = (ReentrantLock) Kafka.call(thread, "partitionMapLock");
    Object built;
    lock.lock();
    try {
      Map<?, ?> states = (Map<?, ?>) Kafka.call(Kafka.get(thread, "partitionStates"), "partitionStateMap");
      built = Kafka.orNull(Kafka.call(Kafka.call(endPoint, "buildFetch", new LinkedHashMap<>(states)), "result"));
    } finally {
      lock.unlock();
    }
    if (built == null) {
      throw new Broker.Refused("no log is ready for a fetch");
    }
    call = new Call(true, built);
  }

  /** The call itself, without the thread's lock. */
  void handle() {
    if (call == null || call.answer != null) {
      throw new Broker.Refused("the thread asks nothing");
    }
    call.answer =
        call.isFetch
            ? Kafka.call(endPoint, "fetch", Kafka.call(call.asked, "fetchRequest"))
            : Kafka.call(endPoint, "fetchEpochEndOffsets", Kafka.map(call.asked));
    if (call.isFetch) {
      call.records = records(Kafka.map(call.answer).get(View.PARTITION));
    }
  }

  private static List<Integer> records(Object data) {
    List<Integer> epochs = new ArrayList<>();
    for (Object batch : Kafka.each(Kafka.call(Kafka.call(data, "records"), "batches"))) {
      epochs.add((int) Kafka.call(batch, "partitionLeaderEpoch"));
    }
    return epochs;
  }

  /** What the thread does with the answer. */
  void process() {
    if (call == null || call.answer == null) {
      throw new Broker.Refused("the thread was answered nothing");
    }
    Call answered = call;
    if (answered.isFetch) {
      Object asked = answered.asked;
      Kafka.call(
          thread, "processFetchRequest", Kafka.call(asked, "partitionData"), Kafka.call(asked, "fetchRequest"));
    } else {
      Kafka.call(thread, "truncateToEpochEndOffsets", answered.asked);
    }
    call = null;
  }

  /** The future log was marked for truncation. */
  void marked() {
    if (call != null && !call.isFetch && state() != null) {
      call.overtaken = true;
    }
  }

  private void idle() {
    if (call != null) {
      throw new Broker.Refused("the thread still waits for an answer");
    }
    if (thread == null) {
      throw new Broker.Refused("no thread moves logs");
    }
  }

  // ---- what is seen ------------------------------------------------------------------------

  /** The future log's PartitionFetchState, or null. */
  Object state() {
    return thread == null ? null : Kafka.call(Kafka.get(thread, "partitionStates"), "stateValue", View.PARTITION);
  }

  /** The ReassignmentState of the promotion; None also where there is none. */
  String promotion() {
    Map<?, ?> states = thread == null ? Map.of() : (Map<?, ?>) Kafka.get(thread, "promotionStates");
    Object state = states.get(View.PARTITION);
    return state == null ? "None" : Kafka.call(state, "reassignmentState").toString();
  }

  boolean hasFailed() {
    return (boolean) Kafka.call(Kafka.call(manager, "failedPartitions"), "contains", View.PARTITION);
  }

  boolean isOvertaken() {
    return call != null && call.overtaken;
  }

  /** The call as a message; of type None if there is none. */
  Trip.Message message() {
    if (call == null) {
      return new Trip.Message("None");
    }
    return call.isFetch ? fetch() : epoch();
  }

  private Trip.Message fetch() {
    Trip.Message message = new Trip.Message(call.answer == null ? "FetchRequest" : "FetchResponse");
    Object sent = ((Map<?, ?>) Kafka.map(Kafka.call(call.asked, "partitionData"))).get(View.PARTITION);
    Optional<?> epoch = (Optional<?>) Kafka.get(sent, "currentLeaderEpoch");
    message.currentLeaderEpoch = epoch.map(each -> (int) each).orElse(-1);
    message.fetchOffset = (long) Kafka.get(sent, "fetchOffset");
    if (call.answer != null) {
      Object data = Kafka.map(call.answer).get(View.PARTITION);
      Errors error = Errors.forCode((short) Kafka.call(data, "errorCode"));
      message.error = error.name();
      if (error == Errors.NONE) {
        message.records = call.records;
        message.highWatermark = (long) Kafka.call(data, "highWatermark");
      }
    }
    return message;
  }

  private Trip.Message epoch() {
    Trip.Message message = new Trip.Message(call.answer == null ? "EpochRequest" : "EpochResponse");
    Object asked = Kafka.map(call.asked).get(View.PARTITION);
    message.currentLeaderEpoch = (int) Kafka.call(asked, "currentLeaderEpoch");
    if (call.answer == null) {
      message.lastEpoch = (int) Kafka.call(asked, "leaderEpoch");
    } else {
      Object end = Kafka.map(call.answer).get(View.PARTITION);
      message.error = Errors.forCode((short) Kafka.call(end, "errorCode")).name();
      message.epoch = (int) Kafka.call(end, "leaderEpoch");
      message.endOffset = (long) Kafka.call(end, "endOffset");
    }
    return message;
  }
}
