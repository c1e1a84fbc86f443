package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;

/**
 * The network of one AsyncKafkaConsumer, in the place of its NetworkClientDelegate: requests that its
 * managers want to send are handed to the harness, which says what becomes of them.
 */
final class UnsentRequests {
  /** A commit of a later version names topics by their ids only. */
  private static final Map<ApiKeys, Integer> VERSIONS =
      Map.of(ApiKeys.CONSUMER_GROUP_HEARTBEAT, 1, ApiKeys.OFFSET_COMMIT, 9, ApiKeys.FIND_COORDINATOR, 4);

  private record InFlight(Object request, RequestHeader header, long createdMs) {}

  private final Virtual.Clock clock;
  private final String clientId;
  private final int rebalanceMs;
  private final Map<Long, InFlight> inFlight = new LinkedHashMap<>();
  private final List<MemberNetwork.Sent> sent = new ArrayList<>();
  private int number;

  UnsentRequests(Virtual.Clock clock, String clientId, int rebalanceMs) {
    this.clock = clock;
    this.clientId = clientId;
    this.rebalanceMs = rebalanceMs;
  }

  /** Sends what a manager's poll has given; whether that was anything. */
  boolean send(Object pollResult) {
    List<?> requests = (List<?>) Kafka.get(pollResult, "unsentRequests");
    requests.forEach(this::sendRequest);
    return !requests.isEmpty();
  }

  private void sendRequest(Object request) {
    AbstractRequest body = body(request);
    if (body.data() instanceof ConsumerGroupHeartbeatRequestData heartbeat) {
      complete(heartbeat);
    }
    RequestHeader header = header(body);
    ByteBuffer frame =
        RequestUtils.serialize(header.data(), header.headerVersion(), body.data(), body.version());
    byte[] bytes = new byte[frame.remaining()];
    frame.get(bytes);
    inFlight.put((long) number, new InFlight(request, header, clock.milliseconds()));
    sent.add(new MemberNetwork.Sent(number, bytes));
  }

  /**
   * A heartbeat that names partitions has all other fields too, as in the specification.
   *
   * <p>The client leaves out what it has said before when it acknowledges an assignment. The answer
   * then lacks the assignment, which the client knows.
   */
  private void complete(ConsumerGroupHeartbeatRequestData heartbeat) {
    if (heartbeat.topicPartitions() != null && heartbeat.memberEpoch() >= 0) {
      heartbeat.setRebalanceTimeoutMs(rebalanceMs);
      heartbeat.setSubscribedTopicNames(List.of(Metadata.TOPIC));
    }
  }

  private static AbstractRequest body(Object request) {
    AbstractRequest.Builder<?> builder = (AbstractRequest.Builder<?>) Kafka.call(request, "requestBuilder");
    return builder.build((short) (int) VERSIONS.get(builder.apiKey()));
  }

  private RequestHeader header(AbstractRequest body) {
    return new RequestHeader(body.apiKey(), body.version(), clientId, ++number);
  }

  /** FindCoordinator is answered at once. */
  void answerFindCoordinator(Object pollResult) {
    for (Object request : (List<?>) Kafka.get(pollResult, "unsentRequests")) {
      InFlight flying = new InFlight(request, header(body(request)), clock.milliseconds());
      complete(flying, MemberNetwork.coordinatorFound());
    }
  }

  /** An answer arrives, as bytes without their size; null: the request or its answer is lost. */
  void answer(long request, ByteBuffer frame) {
    InFlight of = inFlight.remove(request);
    if (of == null) {
      throw new Broker.Refused("the client does not wait for an answer to " + request);
    }
    complete(of, frame == null ? null : AbstractResponse.parseResponse(frame, of.header));
  }

  private void complete(InFlight of, AbstractResponse body) {
    Kafka.call(
        Kafka.call(of.request, "handler"),
        "onComplete",
        new ClientResponse(
            of.header, null, "0", of.createdMs, clock.milliseconds(), body == null, null, null, body));
  }

  /** Requests sent since they were last written. */
  void write(JsonGenerator out) throws IOException {
    MemberNetwork.write(out, sent);
    sent.clear();
  }
}
