package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.util.Map;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;

/** Writes what a coordinator has of a group, read off its objects, as JSON arrays. */
final class GroupView {
  private GroupView() {}

  /** null where there is no group. */
  static void write(JsonGenerator out, Coordinator coordinator, String id, GroupRequests requests)
      throws IOException {
    Object group = coordinator.group(id);
    if (group == null) {
      out.writeNull();
      return;
    }
    out.writeStartArray();
    out.writeString(Kafka.call(group, "currentState").toString());
    out.writeNumber((int) Kafka.call(group, "generationId"));
    out.writeString((String) Kafka.orNull(Kafka.call(group, "protocolName")));
    out.writeString((String) Kafka.call(group, "leaderOrNull"));
    out.writeStartArray();
    for (Object member : Kafka.map(Kafka.get(group, "members")).values()) {
      member(out, coordinator, member, requests);
    }
    out.writeEndArray();
    texts(out, Kafka.get(group, Kafka.has(group, "pendingJoinMembers") ? "pendingJoinMembers" : "pendingMembers"));
    statics(out, Kafka.map(Kafka.get(group, "staticMembers")));
    texts(out, Kafka.get(group, "pendingSyncMembers"));
    timer(out, coordinator, id);
    out.writeBoolean((boolean) Kafka.call(group, "newMemberAdded"));
    out.writeEndArray();
  }

  private static void member(
      JsonGenerator out, Coordinator coordinator, Object member, GroupRequests requests)
      throws IOException {
    out.writeStartArray();
    out.writeString((String) Kafka.call(member, "memberId"));
    out.writeStartArray();
    for (Object protocol : Kafka.each(Kafka.call(member, "supportedProtocols"))) {
      boolean pair = protocol instanceof scala.Tuple2<?, ?>;
      out.writeString((String) Kafka.call(protocol, pair ? "_1" : "name"));
    }
    out.writeEndArray();
    out.writeBinary((byte[]) Kafka.call(member, "assignment"));
    out.writeBoolean((boolean) Kafka.call(member, "isAwaitingJoin"));
    out.writeBoolean((boolean) Kafka.call(member, "isAwaitingSync"));
    out.writeBoolean((boolean) Kafka.call(member, "isNew"));
    out.writeObject(requests.heldBy(coordinator, member));
    out.writeEndArray();
  }

  private static void texts(JsonGenerator out, Object collection) throws IOException {
    out.writeStartArray();
    for (Object text : Kafka.each(collection)) {
      out.writeString((String) text);
    }
    out.writeEndArray();
  }

  private static void statics(JsonGenerator out, Map<?, ?> byInstance) throws IOException {
    out.writeStartArray();
    for (Map.Entry<?, ?> entry : byInstance.entrySet()) {
      out.writeStartArray();
      out.writeString((String) entry.getKey());
      out.writeString((String) entry.getValue());
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  /** The timer that ends the join phase: its kind, and what is left of an initial delay. */
  private static void timer(JsonGenerator out, Coordinator coordinator, String id) throws IOException {
    Coordinator.GroupTimer ending = null;
    for (Coordinator.GroupTimer timer : coordinator.timers(id)) {
      if (timer.kind() == Coordinator.Kind.JOIN || timer.kind() == Coordinator.Kind.INITIAL_JOIN) {
        ending = timer;
      }
    }
    out.writeString(ending == null ? null : ending.kind().name());
    out.writeNumber(ending == null ? 0 : ending.remainingMs());
  }

  /** What is stored; null where nothing is. */
  static void record(JsonGenerator out, GroupMetadataValue stored) throws IOException {
    if (stored == null) {
      out.writeNull();
      return;
    }
    out.writeStartArray();
    out.writeNumber(stored.generation());
    out.writeString(stored.protocol());
    out.writeString(stored.leader());
    out.writeStartArray();
    for (GroupMetadataValue.MemberMetadata member : stored.members()) {
      out.writeStartArray();
      out.writeString(member.memberId());
      out.writeString(member.groupInstanceId());
      out.writeBinary(member.assignment());
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeEndArray();
  }
}
