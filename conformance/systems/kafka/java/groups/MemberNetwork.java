package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.message.FindCoordinatorResponseData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.FindCoordinatorResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;

/**
 * The KafkaClient of one consumer: FindCoordinator is answered at once, other requests are handed to
 * the harness, which says what becomes of them.
 *
 * <p>Answers reach the consumer in the harness's thread only, never in the heartbeat thread's.
 */
final class MemberNetwork implements InvocationHandler {
  /** A request as it goes over the wire, without its size. */
  record Sent(long number, byte[] frame) {}

  private static final Node BROKER = new Node(0, "127.0.0.1", 9092);
  private static final Map<ApiKeys, Integer> VERSIONS =
      Map.of(
          ApiKeys.SYNC_GROUP, 5,
          ApiKeys.HEARTBEAT, 4,
          ApiKeys.LEAVE_GROUP, 5,
          ApiKeys.OFFSET_COMMIT, 9,
          ApiKeys.FIND_COORDINATOR, 4);

  /** The subscription's version; 2 came with KIP-792. */
  private static final short WITHOUT_GENERATION = 1;

  private record InFlight(ClientRequest request, RequestHeader header) {}

  private final Thread harness = Thread.currentThread();
  private final Virtual.Clock clock;
  private final String clientId;
  private final int joinVersion;
  private final Runnable beforeUse;
  private final Runnable updateMetadata;
  private final Map<Long, InFlight> inFlight = new LinkedHashMap<>();
  private final List<Sent> sent = new ArrayList<>();
  private final List<ClientResponse> arrived = new ArrayList<>();
  private int correlation;
  private long number;

  /**
   * `beforeUse` is run when the consumer asks whether its coordinator can still be reached,
   * `updateMetadata` at each poll, as NetworkClient's MetadataUpdater.
   */
  MemberNetwork(
      Virtual.Clock clock, String clientId, int joinVersion, Runnable beforeUse, Runnable updateMetadata) {
    this.clock = clock;
    this.clientId = clientId;
    this.joinVersion = joinVersion;
    this.beforeUse = beforeUse;
    this.updateMetadata = updateMetadata;
  }

  KafkaClient client() {
    return (KafkaClient) Kafka.play(KafkaClient.class, this);
  }

  @Override
  public synchronized Object invoke(Object proxy, Method method, Object[] arguments) {
    switch (method.getName()) {
      case "send" -> send((ClientRequest) arguments[0]);
      case "poll" -> {
        return poll();
      }
      case "newClientRequest" -> {
        return request(arguments, correlation++, clientId);
      }
      case "leastLoadedNode" -> {
        Class<?> type = method.getReturnType();
        return type == Node.class ? BROKER : Kafka.make(type, BROKER, true);
      }
      case "connectionFailed" -> beforeUse.run();
      case "disconnect" -> disconnect();
      case "isReady", "ready", "active", "hasReadyNodes" -> {
        return true;
      }
      default -> {}
    }
    return nothing(method.getReturnType());
  }

  /** What a method that has nothing to say returns. */
  static Object nothing(Class<?> type) {
    if (type == boolean.class) {
      return false;
    }
    if (type == int.class) {
      return 0;
    }
    return type == long.class ? 0L : null;
  }

  /** KafkaClient.newClientRequest. */
  static ClientRequest request(Object[] of, int correlation, String clientId) {
    boolean complete = of.length > 4;
    return new ClientRequest(
        (String) of[0],
        (AbstractRequest.Builder<?>) of[1],
        correlation,
        clientId,
        (long) of[2],
        (boolean) of[3],
        complete ? (int) of[4] : Integer.MAX_VALUE,
        complete ? (RequestCompletionHandler) of[5] : null);
  }

  private void send(ClientRequest request) {
    ApiKeys api = request.apiKey();
    short version = (short) (int) (api == ApiKeys.JOIN_GROUP ? joinVersion : VERSIONS.get(api));
    AbstractRequest body = request.requestBuilder().build(version);
    if (body.data() instanceof JoinGroupRequestData join) {
      join.protocols().forEach(MemberNetwork::hideGeneration);
    }
    InFlight flying = new InFlight(request, request.makeHeader(version));
    if (api == ApiKeys.FIND_COORDINATOR) {
      arrived.add(response(flying, coordinatorFound(), false));
      return;
    }
    ByteBuffer frame =
        RequestUtils.serialize(flying.header.data(), flying.header.headerVersion(), body.data(), version);
    byte[] bytes = new byte[frame.remaining()];
    frame.get(bytes);
    inFlight.put(++number, flying);
    sent.add(new Sent(number, bytes));
  }

  /**
   * The subscription as consumers told it before KIP-792.
   *
   * <p>Since then it carries the generation in which it was made. A coordinator compares
   * subscriptions byte by byte, and so takes a member that joins again in a later generation for
   * one that subscribes to something else. The specification has a member's assignors there, and
   * no generation.
   */
  private static void hideGeneration(JoinGroupRequestData.JoinGroupRequestProtocol protocol) {
    ByteBuffer told = ByteBuffer.wrap(protocol.metadata());
    ByteBuffer older =
        ConsumerProtocol.serializeSubscription(
            ConsumerProtocol.deserializeSubscription(told), WITHOUT_GENERATION);
    byte[] bytes = new byte[older.remaining()];
    older.get(bytes);
    protocol.setMetadata(bytes);
  }

  static AbstractResponse coordinatorFound() {
    return new FindCoordinatorResponse(
        new FindCoordinatorResponseData()
            .setCoordinators(
                List.of(
                    new FindCoordinatorResponseData.Coordinator()
                        .setKey(Groups.GROUP)
                        .setNodeId(BROKER.id())
                        .setHost(BROKER.host())
                        .setPort(BROKER.port()))));
  }

  /** There is none now. */
  static AbstractResponse noCoordinator() {
    return new FindCoordinatorResponse(
        new FindCoordinatorResponseData()
            .setCoordinators(
                List.of(
                    new FindCoordinatorResponseData.Coordinator()
                        .setKey(Groups.GROUP)
                        .setErrorCode(Errors.COORDINATOR_NOT_AVAILABLE.code()))));
  }

  private ClientResponse response(InFlight of, AbstractResponse body, boolean disconnected) {
    return new ClientResponse(
        of.header,
        of.request.callback(),
        of.request.destination(),
        of.request.createdTimeMs(),
        clock.milliseconds(),
        disconnected,
        null,
        null,
        body);
  }

  private List<ClientResponse> poll() {
    if (Thread.currentThread() != harness) {
      return List.of();
    }
    updateMetadata.run();
    List<ClientResponse> delivered = List.copyOf(arrived);
    arrived.clear();
    delivered.forEach(ClientResponse::onComplete);
    return delivered;
  }

  /** As NetworkClient.disconnect: whatever is in flight will not be answered any more. */
  private void disconnect() {
    inFlight.values().forEach(one -> arrived.add(response(one, null, true)));
    inFlight.clear();
  }

  /** An answer arrives, as bytes without their size; null: the request or its answer is lost. */
  synchronized void answer(long request, ByteBuffer frame) {
    InFlight of = inFlight.remove(request);
    if (of == null) {
      throw new Broker.Refused("the client does not wait for an answer to " + request);
    }
    AbstractResponse body = frame == null ? null : AbstractResponse.parseResponse(frame, of.header);
    arrived.add(response(of, body, frame == null));
  }

  /** [[number, frame], ...]. */
  static void write(JsonGenerator out, List<Sent> requests) throws IOException {
    out.writeStartArray();
    for (Sent request : requests) {
      out.writeStartArray();
      out.writeNumber(request.number());
      out.writeBinary(request.frame());
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  /** Requests sent since they were last asked for. */
  synchronized List<Sent> sent() {
    List<Sent> all = List.copyOf(sent);
    sent.clear();
    return all;
  }

  synchronized boolean hasSent() {
    return !sent.isEmpty();
  }

  synchronized List<Long> inFlight() {
    return List.copyOf(inFlight.keySet());
  }
}
