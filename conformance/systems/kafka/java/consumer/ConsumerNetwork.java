package kconform;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;
import org.apache.kafka.common.requests.ResponseHeader;

/**
 * The KafkaClient of one consumer (NetworkClient): what it sends is in flight until a command says
 * what becomes of it. Some requests are answered at once.
 */
final class ConsumerNetwork implements InvocationHandler {
  /** A request that was sent. */
  record Flight(ClientRequest request, RequestHeader header, AbstractRequest body) {
    ApiKeys api() {
      return request.apiKey();
    }
  }

  /** The broker that is asked for the coordinator, and is the coordinator. */
  static final Node BROKER = new Node(0, "127.0.0.1", 9092);

  private final Virtual.Clock clock;
  private final Application application;
  private final Function<Flight, AbstractResponse> answersAtOnce;
  private final BooleanSupplier updatesMetadata;
  private final List<Flight> inFlight = new ArrayList<>();
  private final List<ClientResponse> arrived = new ArrayList<>();
  private String broken;
  private int correlation;

  /**
   * `answersAtOnce` gives the answer to a request, or null if it stays in flight. `updatesMetadata`
   * is run at each poll, as NetworkClient's MetadataUpdater; it says whether metadata came.
   */
  ConsumerNetwork(
      Virtual.Clock clock,
      Application application,
      Function<Flight, AbstractResponse> answersAtOnce,
      BooleanSupplier updatesMetadata) {
    this.clock = clock;
    this.application = application;
    this.answersAtOnce = answersAtOnce;
    this.updatesMetadata = updatesMetadata;
  }

  KafkaClient client() {
    return (KafkaClient) Kafka.play(KafkaClient.class, this);
  }

  // ---- KafkaClient -------------------------------------------------------------------------

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) {
    return switch (method.getName()) {
      case "poll" -> poll((long) arguments[0]);
      case "newClientRequest" -> MemberNetwork.request(arguments, nextCorrelation(), "consumer");
      case "leastLoadedNode" -> {
        Class<?> type = method.getReturnType();
        yield type == Node.class ? BROKER : Kafka.make(type, BROKER, true);
      }
      case "connectionFailed" -> isBroken((Node) arguments[0]);
      case "connectionDelay" -> isBroken((Node) arguments[0]) ? 1L : 0L;
      case "isReady", "active", "hasReadyNodes" -> true;
      case "ready" -> connect((Node) arguments[0]);
      case "hasInFlightRequests", "inFlightRequestCount" -> {
        int count = count(arguments == null ? null : (String) arguments[0]);
        yield method.getReturnType() == int.class ? (Object) count : (Object) (count > 0);
      }
      case "send" -> send((ClientRequest) arguments[0]);
      case "disconnect" -> fail((String) arguments[0]);
      default -> MemberNetwork.nothing(method.getReturnType());
    };
  }

  private synchronized int nextCorrelation() {
    return correlation++;
  }

  private synchronized boolean isBroken(Node node) {
    return node.idString().equals(broken);
  }

  private synchronized boolean connect(Node node) {
    if (isBroken(node)) {
      broken = null;
    }
    return true;
  }

  private synchronized int count(String node) {
    return (int)
        inFlight.stream().filter(one -> node == null || one.request.destination().equals(node)).count();
  }

  private synchronized Object send(ClientRequest request) {
    short version = request.requestBuilder().latestAllowedVersion();
    Flight flight =
        new Flight(request, request.makeHeader(version), request.requestBuilder().build(version));
    AbstractResponse answer = answersAtOnce.apply(flight);
    if (answer == null) {
      inFlight.add(flight);
    } else {
      arrived.add(response(flight, answer));
    }
    return null;
  }

  private List<ClientResponse> poll(long timeoutMs) {
    boolean hasCome = updatesMetadata.getAsBoolean() | hasArrived();
    if (timeoutMs > 0 && !hasCome) {
      application.standStill();
      updatesMetadata.getAsBoolean();
    }
    List<ClientResponse> delivered = delivered();
    delivered.forEach(ClientResponse::onComplete);
    return delivered;
  }

  private synchronized boolean hasArrived() {
    return !arrived.isEmpty();
  }

  private synchronized List<ClientResponse> delivered() {
    List<ClientResponse> delivered = List.copyOf(arrived);
    arrived.clear();
    return delivered;
  }

  /** `body` is null if the connection broke. */
  private ClientResponse response(Flight of, AbstractResponse body) {
    return new ClientResponse(
        of.header,
        of.request.callback(),
        of.request.destination(),
        of.request.createdTimeMs(),
        clock.milliseconds(),
        body == null,
        null,
        null,
        body);
  }

  private synchronized Object fail(String node) {
    for (Flight flight : inFlight()) {
      if (flight.request.destination().equals(node)) {
        lose(flight);
      }
    }
    return null;
  }

  // ---- commands ----------------------------------------------------------------------------

  /** What is in flight, the oldest first. */
  synchronized List<Flight> inFlight() {
    return List.copyOf(inFlight);
  }

  /** What of a kind is in flight, the oldest first. */
  List<Flight> inFlight(ApiKeys api) {
    return inFlight().stream().filter(one -> one.api() == api).toList();
  }

  /** The oldest request of a kind. Refused if there is none. */
  Flight oldest(ApiKeys api) {
    return inFlight(api).stream()
        .findFirst()
        .orElseThrow(() -> new Broker.Refused("no " + api + " is in flight"));
  }

  /** An answer arrives, as it would be read from the wire. */
  void answer(Flight flight, ApiMessage data) {
    ResponseHeader header = flight.header.toResponseHeader();
    ByteBuffer frame =
        RequestUtils.serialize(header.data(), header.headerVersion(), data, flight.header.apiVersion());
    answer(flight, AbstractResponse.parseResponse(frame, flight.header));
  }

  /** An answer arrives. */
  synchronized void answer(Flight flight, AbstractResponse body) {
    inFlight.remove(flight);
    arrived.add(response(flight, body));
  }

  /** The connection breaks before the answer arrives. */
  synchronized void lose(Flight flight) {
    inFlight.remove(flight);
    arrived.add(response(flight, null));
  }

  /** The connection to a node breaks, with all that is in flight. */
  synchronized void breakConnection(String node) {
    broken = node;
    fail(node);
  }
}
