package kconform;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.HeartbeatResponse;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.LeaveGroupResponse;
import org.apache.kafka.common.requests.SyncGroupResponse;

/** What a group's coordinator answers to the one member that is tested. */
final class GroupAnswers {
  static final String MEMBER_ID = "member";
  static final String OTHER_ID = "another";
  private static final String PROTOCOL_TYPE = "consumer";

  private GroupAnswers() {}

  /** JoinGroup: the group has a generation. `members` are told to who leads; empty: another does. */
  static AbstractResponse joined(
      ConsumerNetwork.Flight join,
      int generation,
      String assignor,
      List<JoinGroupResponseData.JoinGroupResponseMember> members) {
    return new JoinGroupResponse(
        new JoinGroupResponseData()
            .setMemberId(MEMBER_ID)
            .setGenerationId(generation)
            .setProtocolType(PROTOCOL_TYPE)
            .setProtocolName(assignor)
            .setLeader(members.isEmpty() ? OTHER_ID : MEMBER_ID)
            .setMembers(members),
        join.header().apiVersion());
  }

  /** SyncGroup: what the member sent for itself, if it leads, or else what another has sent. */
  static AbstractResponse synced(SyncGroupRequestData sync, Collection<TopicPartition> granted) {
    byte[] assignment =
        sync.assignments().stream()
            .filter(one -> one.memberId().equals(MEMBER_ID))
            .map(SyncGroupRequestData.SyncGroupRequestAssignment::assignment)
            .findFirst()
            .orElseGet(
                () ->
                    bytes(ConsumerProtocol.serializeAssignment(new Assignment(List.copyOf(granted)))));
    return new SyncGroupResponse(
        new SyncGroupResponseData()
            .setProtocolType(PROTOCOL_TYPE)
            .setProtocolName(sync.protocolName())
            .setAssignment(assignment));
  }

  static byte[] bytes(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.get(bytes);
    return bytes;
  }

  static AbstractResponse heartbeat(Errors error) {
    return new HeartbeatResponse(new HeartbeatResponseData().setErrorCode(error.code()));
  }

  static AbstractResponse left() {
    return new LeaveGroupResponse(new LeaveGroupResponseData());
  }
}
