package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.StringWriter;
import java.lang.reflect.Type;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.ApiVersionsResponseData.FinalizedFeatureKey;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;

/**
 * The commands of a transactional producer without its threads: the Java client's TransactionManager.
 *
 * <p>What KafkaProducer (the application's thread) and Sender do with it is done here, when a command
 * says so. What a coordinator or a leader answers is the command's.
 */
final class TransactionalProducer {
  static final String PREFIX = "producer_";
  private static final String PACKAGE = "org.apache.kafka.clients.producer.internals.";
  private static final TopicPartition PARTITION = new TopicPartition("t", 0);
  private static final String NONE = "NONE";
  private static final String NOBODY = "none";

  /** A request that waits for its answer. */
  private record Flight(RequestCompletionHandler handler, ApiKeys request, short version, int id) {}

  private final ObjectMapper json = new ObjectMapper();
  private Object manager;
  private CoordinatorAnswers coordinator;
  private Flight flight;
  private int correlationId;
  /** The accumulator's only batch: none, one that waits to be sent, one that is sent. */
  private Object batch;
  private boolean isSent;
  /** The application's call that has not returned, or that it gave up; and what it was told last. */
  private String call;
  private boolean waits;
  private Object result;
  private String thrown;

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    switch (name) {
      case "producer_view" -> {
        return view();
      }
      case "producer_reset" -> reset(command.get("version2").asBoolean());
      case "producer_init" -> call("init", this::initializeTransactions);
      case "producer_begin" -> call(() -> Kafka.call(manager, "beginTransaction"));
      case "producer_send" -> call(this::send);
      case "producer_fail_send" -> call(() -> failSend(Errors.valueOf(command.get("error").asText())));
      case "producer_send_offsets" -> call("offsets", this::sendOffsets);
      case "producer_commit" -> call("commit", () -> Kafka.call(manager, "beginCommit"));
      case "producer_abort" -> call("abort", () -> Kafka.call(manager, "beginAbort"));
      case "producer_stop_waiting" -> waits = false;
      case "producer_next_request" -> nextRequest();
      case "producer_answer" -> answer(Errors.valueOf(command.get("error").asText()));
      case "producer_send_batch" -> sendBatch();
      case "producer_complete_batch" -> completeBatch();
      case "producer_fail_batch" -> failBatch(Errors.valueOf(command.get("error").asText()));
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    settle();
    return "null";
  }

  // ---- the producer ------------------------------------------------------------------------

  private void reset(boolean version2) {
    ApiVersions versions = new ApiVersions();
    versions.update(CoordinatorAnswers.NODE.idString(), ofBroker(version2));
    manager =
        Kafka.wire(
            Kafka.type(PACKAGE + "TransactionManager"), type -> part(Kafka.raw(type), versions));
    coordinator = new CoordinatorAnswers(PARTITION, version2);
    flight = null;
    correlationId = 0;
    batch = null;
    isSent = false;
    call = NOBODY;
    waits = false;
    result = null;
    thrown = NONE;
  }

  private static NodeApiVersions ofBroker(boolean version2) {
    if (!version2) {
      return NodeApiVersions.create();
    }
    FinalizedFeatureKey feature =
        new FinalizedFeatureKey()
            .setName("transaction.version")
            .setMinVersionLevel((short) 2)
            .setMaxVersionLevel((short) 2);
    Collection<?> versions = NodeApiVersions.create().allSupportedApiVersions().values();
    return (NodeApiVersions)
        Kafka.make(NodeApiVersions.class, versions, List.of(), List.of(feature), 1L);
  }

  private static Object part(Class<?> type, ApiVersions versions) {
    if (type == String.class) {
      return "transactional-id";
    }
    if (type == int.class || type == long.class) {
      return 0;
    }
    if (type == boolean.class) {
      return false; // two-phase commit
    }
    return switch (type.getSimpleName()) {
      case "LogContext" -> Kafka.make(type, "");
      case "ApiVersions" -> versions;
      default -> metadata(type);
    };
  }

  /** From 4.4 on: it knows no topic, so offsets are committed by topics' names. */
  private static Object metadata(Class<?> type) {
    Object log = Kafka.make(Kafka.type("LogContext"), "");
    return Kafka.wire(
        type,
        part ->
            Kafka.raw(part) == long.class
                ? 0L
                : Kafka.raw(part).isInstance(log) ? log : Kafka.make(Kafka.raw(part)));
  }

  // ---- the application: KafkaProducer ------------------------------------------------------

  /** A call that returns at once. */
  private void call(Runnable body) {
    thrown = NONE;
    try {
      body.run();
    } catch (KafkaException | IllegalStateException error) {
      thrown = nameOf(error);
    }
  }

  /** A call that waits for a result. */
  private void call(String name, Supplier<Object> body) {
    call(
        () -> {
          result = body.get();
          call = name;
          waits = true;
        });
  }

  /** A call that waits returns as soon as there is its result. */
  private void settle() {
    if (!waits || !(boolean) Kafka.call(result, "isCompleted")) {
      return;
    }
    boolean initializes = call.equals("init");
    call = NOBODY;
    waits = false;
    call(() -> Kafka.wireCall(result, "await", TransactionalProducer::noTime));
    if (initializes && thrown.equals(NONE)) {
      String newer = "maybeUpdateTransactionV2Enabled"; // from 4.0 on
      if (Kafka.hasMethod(manager, newer)) {
        Kafka.call(manager, newer, true);
      }
    }
  }

  private static Object noTime(Type type) {
    Class<?> raw = Kafka.raw(type);
    return raw == long.class ? 0L : raw == TimeUnit.class ? TimeUnit.MILLISECONDS : "";
  }

  private Object initializeTransactions() {
    // From 4.1 on with an argument: whether a prepared transaction is kept.
    return Kafka.wireCall(manager, "initializeTransactions", type -> false);
  }

  private Object sendOffsets() {
    return Kafka.call(
        manager,
        "sendOffsetsToTransaction",
        Map.of(PARTITION, new OffsetAndMetadata(1)),
        new ConsumerGroupMetadata("group"));
  }

  /** KafkaProducer.doSend: the record's batch is in the accumulator. */
  private void send() {
    Kafka.call(manager, "maybeAddPartition", PARTITION);
    batch = ProducerClient.batch(PARTITION, "v", 1);
    isSent = false;
  }

  /** KafkaProducer.doSend, where there is no batch yet. */
  private void failSend(Errors error) {
    Kafka.call(manager, "maybeTransitionToErrorState", error.exception());
  }

  // ---- the sender: Sender ------------------------------------------------------------------

  private boolean is(String question) {
    return (boolean) Kafka.call(manager, question);
  }

  /** Sender.maybeSendAndPollTransactionalRequest. */
  private void nextRequest() {
    if (flight != null || is("hasFatalError")) {
      throw new Broker.Refused("the sender sends no request now");
    }
    if (batch != null && !isSent && (is("hasAbortableError") || is("isAborting"))) {
      batch = null; // accumulator.abortUndrainedBatches
    }
    Object handler = Kafka.call(manager, "nextRequest", batch != null);
    while (handler != null && !isReady(handler)) {
      Kafka.call(manager, "lookupCoordinator", handler);
      Kafka.call(manager, "retry", handler);
      handler = Kafka.call(manager, "nextRequest", batch != null);
    }
    if (handler != null) {
      flight = sent(handler);
    }
  }

  /** Whether a request's coordinator is known; what looks for one is answered at once. */
  private boolean isReady(Object handler) {
    Object type = Kafka.call(handler, "coordinatorType");
    return type == null || Kafka.call(manager, "coordinator", type) != null;
  }

  private Flight sent(Object handler) {
    AbstractRequest.Builder<?> builder = (AbstractRequest.Builder<?>) Kafka.call(handler, "requestBuilder");
    Flight sent =
        new Flight(
            (RequestCompletionHandler) handler,
            builder.apiKey(),
            builder.latestAllowedVersion(),
            correlationId++);
    Kafka.call(manager, "setInFlightCorrelationId", sent.id);
    if (sent.request != ApiKeys.FIND_COORDINATOR) {
      return sent;
    }
    Object data = Kafka.call(builder, "data");
    complete(sent, CoordinatorAnswers.found((String) Kafka.call(data, "key")));
    Kafka.call(manager, "handleCoordinatorReady");
    nextRequest();
    return flight;
  }

  private void answer(Errors error) {
    Flight answered = flight;
    flight = null;
    complete(answered, coordinator.to(answered.request, error, (short) (epoch() + 1)));
    dropIfFatal();
  }

  private static void complete(Flight flight, AbstractResponse response) {
    RequestHeader header = new RequestHeader(flight.request, flight.version, "", flight.id);
    String node = CoordinatorAnswers.NODE.idString();
    flight.handler.onComplete(
        new ClientResponse(header, flight.handler, node, 0, 0, false, null, null, response));
  }

  /** RecordAccumulator.drain. */
  private void sendBatch() {
    if (!(boolean) Kafka.call(manager, "isSendToPartitionAllowed", PARTITION)) {
      throw new Broker.Refused("the partition may not be sent to");
    }
    ProducerClient.number(manager, batch, PARTITION, 1);
    isSent = true;
  }

  private void completeBatch() {
    Kafka.call(manager, "handleCompletedBatch", batch, ProducerClient.response(Errors.NONE, 0));
    batch = null;
  }

  /** Sender.failBatch: the leader's answer, or no answer until the delivery time-out. */
  private void failBatch(Errors error) {
    Object failed = batch;
    batch = null;
    boolean isAnswered = isSent && error != Errors.REQUEST_TIMED_OUT;
    Kafka.call(manager, "handleFailedBatch", failed, error.exception(), isAnswered);
    dropIfFatal();
  }

  /** Sender.runOnce: maybeAbortBatches. */
  private void dropIfFatal() {
    if (is("hasFatalError")) {
      batch = null;
    }
  }

  // ---- what is seen ------------------------------------------------------------------------

  private int epoch() {
    return (short) Kafka.get(Kafka.call(manager, "producerIdAndEpoch"), "epoch");
  }

  /** By Kafka's error code, or by the exception's class if it has none of its own. */
  private static String nameOf(Object error) {
    if (error == null) {
      return NONE;
    }
    Errors code = Errors.forException((Throwable) error);
    return code == Errors.UNKNOWN_SERVER_ERROR ? error.getClass().getSimpleName() : code.name();
  }

  private static String nameOfRequest(Object handler) {
    String name = handler.getClass().getSimpleName().replace("Handler", "");
    boolean bumps = name.equals("InitProducerId") && (boolean) Kafka.get(handler, "isEpochBump");
    return bumps ? "BumpEpoch" : name;
  }

  private String added() {
    return Stream.of("new", "pending", "")
        .filter(part -> partitions(part).contains(PARTITION))
        .findFirst()
        .map(part -> part.isEmpty() ? "yes" : part)
        .orElse("no");
  }

  private Collection<?> partitions(String part) {
    String name = part.isEmpty() ? "partitionsInTransaction" : part + "PartitionsInTransaction";
    return (Collection<?>) Kafka.get(manager, name);
  }

  private boolean bumps() {
    String newer = "clientSideEpochBumpRequired"; // from 4.0 on
    return (boolean) Kafka.get(manager, Kafka.has(manager, newer) ? newer : "epochBumpRequired");
  }

  private String outcome() {
    if (result == null || call.equals(NOBODY) || !(boolean) Kafka.call(result, "isCompleted")) {
      return NOBODY;
    }
    return nameOf(Kafka.call(result, "error"));
  }

  private String view() throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      out.writeString(Kafka.get(manager, "currentState").toString());
      out.writeString(nameOf(Kafka.get(manager, "lastError")));
      out.writeNumber(epoch());
      out.writeBoolean((boolean) Kafka.get(manager, "transactionStarted"));
      out.writeBoolean(bumps());
      out.writeString(added());
      out.writeStartArray();
      for (Object handler : Kafka.each(Kafka.get(manager, "pendingRequests"))) {
        String name = nameOfRequest(handler);
        if (!name.equals("FindCoordinator")) {
          out.writeString(name);
        }
      }
      out.writeEndArray();
      out.writeString(flight == null ? NOBODY : nameOfRequest(flight.handler));
      out.writeString(batch == null ? NOBODY : isSent ? "sent" : "waits");
      out.writeStartArray();
      out.writeString(call);
      out.writeBoolean(waits);
      out.writeString(outcome());
      out.writeEndArray();
      out.writeString(thrown);
      out.writeEndArray();
    }
    return text.toString();
  }
}
