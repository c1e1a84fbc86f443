package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;

/** Writes what a coordinator has of a group of KIP-848, read off its objects, as JSON arrays. */
final class ConsumerGroupView {
  private ConsumerGroupView() {}

  private static final String NONE = "none";

  /**
   * [group epoch, assignment epoch, members, [regular expression, topics], its resolution, preferred
   * assignor, the one that made the target, whether the assignment interval runs]; null where there is no
   * group. A group without members prefers no assignor.
   */
  static void write(JsonGenerator out, ShardCoordinator coordinator, String id) throws IOException {
    Object group = coordinator.group(id);
    if (group == null) {
      out.writeNull();
      return;
    }
    out.writeStartArray();
    out.writeNumber((int) Kafka.call(group, "groupEpoch"));
    out.writeNumber((int) Kafka.call(group, "assignmentEpoch"));
    out.writeStartArray();
    Collection<?> members = ((Map<?, ?>) Kafka.call(group, "members")).values();
    for (Object member : members) {
      member(out, coordinator, group, member);
    }
    out.writeEndArray();
    resolved(out, group);
    out.writeString(coordinator.resolution(id));
    String made = coordinator.assignor().last();
    out.writeString(members.isEmpty() ? NONE : coordinator.preferredAssignor(group));
    out.writeString(made == null ? NONE : made);
    out.writeBoolean(coordinator.intervalRuns(group));
    out.writeEndArray();
  }

  private static void resolved(JsonGenerator out, Object group) throws IOException {
    out.writeStartArray();
    for (Map.Entry<?, ?> each : ((Map<?, ?>) Kafka.call(group, "resolvedRegularExpressions")).entrySet()) {
      out.writeStartArray();
      out.writeString((String) each.getKey());
      names(out, Kafka.get(each.getValue(), "topics"));
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  private static void names(JsonGenerator out, Object names) throws IOException {
    out.writeStartArray();
    for (Object name : (Collection<?>) names) {
      out.writeString((String) name);
    }
    out.writeEndArray();
  }

  private static void member(JsonGenerator out, ShardCoordinator coordinator, Object group, Object member)
      throws IOException {
    Object id = Kafka.call(member, "memberId");
    Object target = Kafka.call(group, "targetAssignment", id);
    GroupTopics topics = coordinator.topics();
    out.writeStartArray();
    out.writeString((String) id);
    out.writeString(Kafka.call(member, "state").toString());
    out.writeNumber((int) Kafka.call(member, "memberEpoch"));
    out.writeNumber((int) Kafka.call(member, "previousMemberEpoch"));
    numbers(out, topics, Kafka.call(member, "assignedPartitions"));
    numbers(out, topics, Kafka.call(member, "partitionsPendingRevocation"));
    described(out, topics, coordinator.described(member, target));
    numbers(out, topics, Kafka.call(target, "partitions"));
    out.writeStartArray();
    for (Object name : (Collection<?>) Kafka.call(member, "subscribedTopicNames")) {
      out.writeString((String) name);
    }
    String regex = (String) Kafka.call(member, "subscribedTopicRegex");
    if (regex != null && !regex.isEmpty()) {
      out.writeString(regex);
    }
    out.writeEndArray();
    Optional<?> assignor = (Optional<?>) Kafka.call(member, "serverAssignorName");
    out.writeString(assignor.map(Object::toString).orElse(NONE));
    out.writeEndArray();
  }

  /** From 4.3 on partitions are mapped to the epochs in which they were assigned (KIP-1251). */
  private static void numbers(JsonGenerator out, GroupTopics topics, Object byTopic) throws IOException {
    out.writeStartArray();
    for (Map.Entry<?, ?> topic : ((Map<?, ?>) byTopic).entrySet()) {
      Object partitions = topic.getValue();
      for (Object partition : partitions instanceof Map<?, ?> map ? map.keySet() : (Collection<?>) partitions) {
        out.writeNumber(topics.number((Uuid) topic.getKey(), (int) partition));
      }
    }
    out.writeEndArray();
  }

  private static void described(
      JsonGenerator out, GroupTopics topics, ConsumerGroupDescribeResponseData.Member member)
      throws IOException {
    out.writeStartArray();
    for (ConsumerGroupDescribeResponseData.TopicPartitions topic : member.assignment().topicPartitions()) {
      for (int partition : topic.partitions()) {
        out.writeNumber(topics.number(topic.topicId(), partition));
      }
    }
    out.writeEndArray();
  }
}
