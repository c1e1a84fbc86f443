package kconform;

import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/** Members' requests at a coordinator, as they came over the wire, and their answers. */
final class GroupRequests {
  /** An answer as it goes over the wire, without its size. */
  record Answered(long number, byte[] frame) {}

  private record Request(RequestHeader header, CompletableFuture<?> answer) {}

  private static final Map<ApiKeys, String> METHODS =
      Map.of(
          ApiKeys.JOIN_GROUP, "joinGroup",
          ApiKeys.SYNC_GROUP, "syncGroup",
          ApiKeys.HEARTBEAT, "heartbeat",
          ApiKeys.LEAVE_GROUP, "leaveGroup",
          ApiKeys.OFFSET_COMMIT, "commitOffsets",
          ApiKeys.CONSUMER_GROUP_HEARTBEAT, "consumerGroupHeartbeat");

  private final Map<Long, Request> waiting = new LinkedHashMap<>();

  void reset() {
    waiting.clear();
  }

  /** What KafkaApis does with a request that it has authorized. */
  void handle(Coordinator coordinator, long number, ByteBuffer frame) {
    RequestHeader header = RequestHeader.parse(frame);
    ApiMessage body = header.apiKey().messageType.newRequest();
    body.read(new ByteBufferAccessor(frame), header.apiVersion());
    if (body instanceof OffsetCommitRequestData commit) {
      commit.topics().stream().filter(topic -> topic.name().equals(Metadata.TOPIC)).forEach(GroupRequests::identify);
    }
    String method = METHODS.get(header.apiKey());
    waiting.put(number, new Request(header, call(coordinator, method, context(header), body)));
  }

  /** As KafkaApis does from 4.1 on with a topic that is named, and not given by its id. */
  static <T> T identify(T topic) {
    if (Kafka.has(topic, "topicId")) {
      Kafka.call(topic, "setTopicId", Metadata.TOPIC_ID);
    }
    return topic;
  }

  /** Calls a method of Kafka's interface GroupCoordinator. */
  static CompletableFuture<?> call(Coordinator coordinator, String method, RequestContext context, Object body) {
    return (CompletableFuture<?>)
        Kafka.wireCall(
            coordinator.service(),
            method,
            type -> {
              Class<?> raw = Kafka.raw(type);
              if (raw.isInstance(context)) {
                return context;
              }
              return raw.isInstance(body) ? body : Kafka.getStatic(raw, "NO_CACHING"); // BufferSupplier
            });
  }

  static RequestContext context(RequestHeader header) {
    return new RequestContext(
        header,
        "1",
        InetAddress.getLoopbackAddress(),
        KafkaPrincipal.ANONYMOUS,
        ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT),
        SecurityProtocol.PLAINTEXT,
        ClientInformation.EMPTY,
        false);
  }

  /** Answers given since they were last asked for. */
  List<Answered> answered() {
    List<Answered> given = new ArrayList<>();
    Iterator<Map.Entry<Long, Request>> each = waiting.entrySet().iterator();
    while (each.hasNext()) {
      Map.Entry<Long, Request> entry = each.next();
      if (entry.getValue().answer.isDone()) {
        given.add(new Answered(entry.getKey(), frame(entry.getValue())));
        each.remove();
      }
    }
    return given;
  }

  private static byte[] frame(Request request) {
    RequestHeader header = request.header;
    ByteBuffer written =
        RequestUtils.serialize(
            header.toResponseHeader().data(),
            header.apiKey().responseHeaderVersion(header.apiVersion()),
            body(request.answer.join(), header.apiVersion()),
            header.apiVersion());
    byte[] bytes = new byte[written.remaining()];
    written.get(bytes);
    return bytes;
  }

  /** Versions of JoinGroup before 7 have no null for the protocol: see JoinGroupResponse. */
  private static ApiMessage body(Object answer, short version) {
    return answer instanceof JoinGroupResponseData join
        ? new JoinGroupResponse(join, version).data()
        : (ApiMessage) answer;
  }

  /** The number of the request whose answer this member waits for; null if none. */
  Long heldBy(Coordinator coordinator, Object member) {
    for (Map.Entry<Long, Request> entry : waiting.entrySet()) {
      if (coordinator.holds(member, entry.getValue().answer)) {
        return entry.getKey();
      }
    }
    return null;
  }
}
