package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Kafka's GroupCoordinatorShard with one group of KIP-848, whose members read a topic of one partition.
 *
 * <p>Operations are the shard's own methods. A state at an offset is what ConsumerGroupDescribe and OffsetFetch
 * read there; who owns the partition, has it or is to give it back is read off the group's timeline.
 */
final class CoordinatedGroup implements ShardKind {
  private static final String GROUP = "group";
  private static final int UNKNOWN_EPOCH = 1; // sent by who is not in the group: any is refused
  private static final int LEAVES = -1;
  private static final int LEAVES_FOR_A_WHILE = -2;
  private static final String INSTANCE = "i"; // of all static members
  private static final int PARTITION = 0;
  private static final long LATEST = Long.MAX_VALUE;
  private static final Map<String, String> SESSIONS =
      Map.of("m1", "session-timeout-group-m1", "m2", "session-timeout-group-m2");

  private static final Map<String, String> PARTS =
      Map.of(
          "ConsumerGroupMetadataKey", "Group",
          "ConsumerGroupPartitionMetadataKey", "Attribute",
          "ConsumerGroupMemberMetadataKey", "Member",
          "ConsumerGroupTargetAssignmentMetadataKey", "Targets",
          "ConsumerGroupTargetAssignmentMemberKey", "Target",
          "ConsumerGroupCurrentMemberAssignmentKey", "Current");

  private final LoadedShard.OfGroups maker =
      new LoadedShard.OfGroups(Map.of("group.consumer.assignment.interval.ms", "0"));
  private final Object serde =
      Kafka.make(Kafka.type("org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde"));
  private final GroupTopics topics;
  private final MetadataDelta delta;

  CoordinatedGroup(BrokerProcess process) {
    List<GroupTopics.Topic> one =
        List.of(new GroupTopics.Topic(Metadata.TOPIC, Metadata.TOPIC_ID, PARTITION, 1));
    topics = new GroupTopics(one, process.metadata.image());
    delta = topics.reset();
  }

  @Override
  public Object builder() {
    return maker.runtimeBuilder();
  }

  @Override
  public int batchBytes(int records) {
    return 1 << 20; // no batch is ever full
  }

  @Override
  public void prepare(Object runtime) {
    String update = Kafka.renamed(runtime, "onNewMetadataImage", "onMetadataUpdate");
    Kafka.wireCall(runtime, update, type -> topics.as(Kafka.raw(type), delta));
  }

  // ---- operations --------------------------------------------------------------------------

  @Override
  public Object write(Object shard, JsonNode kind, int number, int maxBatch) {
    String member = kind.get(1).asText();
    return switch (kind.get(0).asText()) {
      case "join" -> heartbeat(shard, joining(member));
      case "static join" -> heartbeat(shard, joining(member).setInstanceId(INSTANCE));
      case "pause" -> heartbeat(shard, request(member, LEAVES_FOR_A_WHILE).setInstanceId(INSTANCE));
      case "heartbeat" -> heartbeat(shard, request(member, epoch(shard, member)));
      case "leave" -> heartbeat(shard, request(member, LEAVES));
      case "commit" -> commit(shard, member, number);
      case "delete" -> call(shard, "deleteGroups", ApiKeys.DELETE_GROUPS, List.of(GROUP));
      default -> throw new IllegalArgumentException("no operation is called " + kind);
    };
  }

  private static ConsumerGroupHeartbeatRequestData request(String member, int epoch) {
    return new ConsumerGroupHeartbeatRequestData().setGroupId(GROUP).setMemberId(member).setMemberEpoch(epoch);
  }

  private static ConsumerGroupHeartbeatRequestData joining(String member) {
    return request(member, 0)
        .setRebalanceTimeoutMs(1_000)
        .setSubscribedTopicNames(List.of(Metadata.TOPIC))
        .setTopicPartitions(List.of());
  }

  private static Object heartbeat(Object shard, ConsumerGroupHeartbeatRequestData request) {
    return call(shard, "consumerGroupHeartbeat", ApiKeys.CONSUMER_GROUP_HEARTBEAT, request);
  }

  private static Object commit(Object shard, String member, int number) {
    OffsetCommitRequestData request =
        new OffsetCommitRequestData()
            .setGroupId(GROUP)
            .setMemberId(member)
            .setGenerationIdOrMemberEpoch(epoch(shard, member))
            .setTopics(
                List.of(
                    GroupRequests.identify(
                        new OffsetCommitRequestData.OffsetCommitRequestTopic()
                            .setName(Metadata.TOPIC)
                            .setPartitions(
                                List.of(
                                    new OffsetCommitRequestData.OffsetCommitRequestPartition()
                                        .setPartitionIndex(PARTITION)
                                        .setCommittedOffset(number))))));
    return call(shard, "commitOffset", ApiKeys.OFFSET_COMMIT, request);
  }

  private static Object call(Object shard, String method, ApiKeys api, Object body) {
    Object context = GroupRequests.context(new RequestHeader(api, api.latestVersion(), "client", 0));
    return Kafka.call(shard, method, context, body);
  }

  private static int epoch(Object shard, String member) {
    Object group = group(shard, LATEST);
    Object known = group == null ? null : ((Map<?, ?>) Kafka.call(group, "members")).get(member);
    return known == null ? UNKNOWN_EPOCH : (int) Kafka.call(known, "memberEpoch");
  }

  // ---- timers ------------------------------------------------------------------------------

  /** GroupMetadataManager.groupSessionTimeoutKey of both members. */
  @Override
  public Map<String, String> timerKeys() {
    return SESSIONS;
  }

  /** The heartbeat that set it: its operation does not tell one session of a member from another. */
  @Override
  public int setFor(Object operation, int writes) {
    return writes;
  }

  // ---- records -----------------------------------------------------------------------------

  @Override
  public byte[] key(Object record) {
    return (byte[]) Kafka.call(serde, "serializeKey", record);
  }

  @Override
  public byte[] value(Object record) {
    return (byte[]) Kafka.call(serde, "serializeValue", record);
  }

  @Override
  public Object record(ByteBuffer key, ByteBuffer value) {
    return Kafka.call(serde, "deserialize", key, value);
  }

  /**
   * [part, member, value, epoch, has the partition, is to give it back, instance]; an offset has no part, a
   * tombstone the value 0.
   */
  @Override
  public void entry(JsonGenerator out, Object record) throws IOException {
    Object key = message(Kafka.call(record, "key"));
    Object message = message(Kafka.call(record, "value"));
    String part = PARTS.getOrDefault(key.getClass().getSimpleName(), "");
    boolean isCurrent = part.equals("Current") && message != null;
    out.writeStartArray();
    out.writeString(part);
    out.writeString(Kafka.has(key, "memberId") ? (String) Kafka.call(key, "memberId") : "");
    out.writeNumber(message == null ? 0 : number(part, message));
    out.writeNumber(isCurrent ? (int) Kafka.call(message, "memberEpoch") : 0);
    out.writeBoolean(isCurrent && hasPartition(message, "assignedPartitions"));
    out.writeBoolean(isCurrent && hasPartition(message, "partitionsPendingRevocation"));
    out.writeString(part.equals("Member") && message != null ? instance(message) : "");
    out.writeEndArray();
  }

  /** Without its version; up to 4.0 a key has one, too. */
  private static Object message(Object versioned) {
    return versioned instanceof ApiMessageAndVersion ? Kafka.call(versioned, "message") : versioned;
  }

  private static boolean hasPartition(Object message, String partitions) {
    return !((Collection<?>) Kafka.call(message, partitions)).isEmpty();
  }

  private static long number(String part, Object message) {
    return switch (part) {
      case "" -> (long) Kafka.call(message, "offset");
      case "Group" -> (int) Kafka.call(message, "epoch");
      case "Targets" -> (int) Kafka.call(message, "assignmentEpoch");
      case "Target" -> target((Collection<?>) Kafka.call(message, "topicPartitions"));
      case "Attribute" -> target((Collection<?>) Kafka.call(message, "topics"));
      case "Current" -> current(message);
      default -> 1;
    };
  }

  /** The group.instance.id of a record or of a member; empty if it has none. */
  private static String instance(Object member) {
    String id = (String) Kafka.call(member, "instanceId");
    return id == null ? "" : id;
  }

  /** 2: the previous epoch is this one, too; 1: it is another one. Of a record or of a member. */
  private static int current(Object member) {
    boolean isOwn = Kafka.call(member, "previousMemberEpoch").equals(Kafka.call(member, "memberEpoch"));
    return isOwn ? 2 : 1;
  }

  /** 1: nothing; 2: the partition, or its topic. */
  private static int target(Collection<?> partitions) {
    return partitions.isEmpty() ? 1 : 2;
  }

  // ---- what is seen ------------------------------------------------------------------------

  private static Object group(Object shard, long offset) {
    Object groups = Kafka.get(Kafka.get(shard, "groupMetadataManager"), "groups");
    return Kafka.call(groups, "get", GROUP, offset);
  }

  /**
   * [group epoch, assignment epoch, members, owner's epoch or -1, topics, who has the instance] or null; the
   * offset or -1.
   */
  @Override
  public void memory(JsonGenerator out, Object shard, long offset) throws IOException {
    out.writeStartArray();
    Object group = group(shard, offset);
    if (group == null) {
      out.writeNull();
    } else {
      group(out, group, offset);
    }
    out.writeNumber(committed(shard, offset));
    out.writeEndArray();
  }

  private void group(JsonGenerator out, Object group, long offset) throws IOException {
    Object described =
        Kafka.wireCall(
            group,
            "asDescribedGroup",
            type -> {
              Class<?> raw = Kafka.raw(type);
              return raw == long.class ? (Object) offset : raw == String.class ? "uniform" : topics.as(raw, delta);
            });
    out.writeStartArray();
    out.writeNumber((int) Kafka.call(described, "groupEpoch"));
    out.writeNumber((int) Kafka.call(described, "assignmentEpoch"));
    out.writeStartArray();
    Object members = Kafka.get(group, "members");
    for (Object member : (Collection<?>) Kafka.call(described, "members")) {
      out.writeStartArray();
      out.writeString((String) Kafka.call(member, "memberId"));
      Object known = Kafka.call(members, "get", Kafka.call(member, "memberId"), offset);
      out.writeNumber(current(known));
      out.writeNumber((int) Kafka.call(member, "memberEpoch"));
      out.writeBoolean(hasAny(known, "assignedPartitions"));
      out.writeBoolean(hasAny(known, "partitionsPendingRevocation"));
      out.writeNumber(target(targets(member)));
      out.writeString(instance(known));
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeNumber(owner(group, offset));
    out.writeNumber(topics(group, offset));
    String holder = (String) Kafka.call(Kafka.get(group, "staticMembers"), "get", INSTANCE, offset);
    out.writeString(holder == null ? "" : holder);
    out.writeEndArray();
  }

  /** Up to 4.0 what a record says of the topics; every group has had one. From 4.1 on 0 (KAFKA-17747). */
  private static int topics(Object group, long offset) {
    if (!Kafka.hasMethod(group, "subscriptionMetadata")) {
      return 0;
    }
    return (boolean) Kafka.call(Kafka.get(group, "subscribedTopicMetadata"), "isEmpty", offset) ? 1 : 2;
  }

  private static Collection<?> targets(Object member) {
    return (Collection<?>) Kafka.call(Kafka.call(member, "targetAssignment"), "topicPartitions");
  }

  /** From 4.4 on a description has both kinds as one (KAFKA-20431), so they are read off the member. */
  private static boolean hasAny(Object member, String partitions) {
    return !((Map<?, ?>) Kafka.call(member, partitions)).isEmpty();
  }

  private static int owner(Object group, long offset) {
    Object topics = Kafka.get(group, "currentPartitionEpoch");
    Object ofTopic = Kafka.call(topics, "get", Metadata.TOPIC_ID, offset);
    Object epoch = ofTopic == null ? null : Kafka.call(ofTopic, "get", PARTITION, offset);
    return epoch == null ? -1 : (int) epoch;
  }

  private static long committed(Object shard, long offset) {
    Object offsets = Kafka.get(shard, "offsetMetadataManager");
    OffsetFetchRequestData.OffsetFetchRequestGroup request =
        new OffsetFetchRequestData.OffsetFetchRequestGroup()
            .setGroupId(GROUP)
            .setMemberId(null)
            .setMemberEpoch(-1)
            .setTopics(
                List.of(
                    GroupRequests.identify(
                        new OffsetFetchRequestData.OffsetFetchRequestTopics()
                            .setName(Metadata.TOPIC)
                            .setPartitionIndexes(List.of(PARTITION)))));
    OffsetFetchResponseData.OffsetFetchResponseGroup answer =
        (OffsetFetchResponseData.OffsetFetchResponseGroup)
            Kafka.call(offsets, "fetchOffsets", request, offset);
    return answer.topics().get(0).partitions().get(0).committedOffset();
  }
}
