package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.message.DeleteGroupsResponseData.DeletableGroupResultCollection;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestHeader;

/** The commands of group coordinators: two brokers that share the offsets topic, one in office. */
final class Groups {
  static final String PREFIX = "group_";
  static final String GROUP = "group";
  private static final int UNLIMITED = Integer.MAX_VALUE;

  private final ObjectMapper json = new ObjectMapper();
  private final OffsetsTopic topic;
  private final GroupRequests requests = new GroupRequests();
  private Coordinator.Settings settings;
  private Coordinator current;
  private Coordinator other;
  private int epoch;
  private int partitions;

  Groups(File folder) {
    CountedIds.install();
    topic = new OffsetsTopic(new File(folder, "coordinators"));
  }

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    switch (name) {
      case "group_reset" ->
          reset(
              new Coordinator.Settings(
                  command.path("max_size").asInt(UNLIMITED),
                  command.path("initial_delay_ms").asInt(),
                  command.path("migration_policy").asText(),
                  GroupTopics.of(command),
                  assignors(command),
                  command.path("assignment_interval_ms").asInt()),
              command.path("partitions").asInt());
      case "group_request" -> request(command);
      case "group_fire" -> fire(Coordinator.Kind.valueOf(command.get("kind").asText()), command.get("member"));
      case "group_topic" ->
          ((ShardCoordinator) current).topicBecomes(command.get("topic").asInt(), command.get("size").asInt());
      case "group_run_task" -> ((ShardCoordinator) current).events().runTask();
      case "group_release_task" -> ((ShardCoordinator) current).events().release();
      case "group_sleep" -> topic.process.clock.sleep(command.get("ms").asLong());
      case "group_fail_over" -> failOver();
      case "group_delete" -> delete();
      case "group_view" -> {
        return view(this::classicGroup);
      }
      case "group_consumer_view" -> {
        return view(this::consumerGroup);
      }
      case "group_mixed_view" -> {
        return view(this::eitherGroup);
      }
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    return "null";
  }

  /** An empty log, and a coordinator that has just loaded it. */
  private void reset(Coordinator.Settings wanted, int partitions) {
    this.partitions = partitions;
    if (current != null) {
      current.resign(++epoch);
    }
    requests.reset();
    topic.reset();
    CountedIds.reset();
    if (!wanted.equals(settings)) {
      settings = wanted;
      current = Coordinator.on(topic, settings);
      other = Coordinator.on(topic, settings);
    }
    current = current.afresh();
    other = other.afresh();
    current.elect(++epoch);
  }

  private void request(JsonNode command) throws IOException {
    ByteBuffer frame = ByteBuffer.wrap(command.get("frame").binaryValue());
    Runnable handle = () -> requests.handle(current, command.get("number").asLong(), frame);
    if (command.has("target")) {
      ((ShardCoordinator) current).assignor().whileChosen(target(command.get("target")), handle);
    } else if (command.path("refuse_append").asBoolean()) {
      topic.whileRefusing(handle);
    } else {
      handle.run();
    }
    completeActions();
  }

  private static List<String> assignors(JsonNode command) {
    List<String> names = new ArrayList<>();
    command.path("assignors").forEach(name -> names.add(name.asText()));
    return names.isEmpty() ? List.of("range") : names;
  }

  /** Partitions by member id; null where the harness chooses none. */
  private static Map<String, Set<Integer>> target(JsonNode chosen) {
    if (chosen.isNull()) {
      return null;
    }
    Map<String, Set<Integer>> target = new HashMap<>();
    chosen.fields().forEachRemaining(
        each -> {
          Set<Integer> partitions = new HashSet<>();
          each.getValue().forEach(partition -> partitions.add(partition.asInt()));
          target.put(each.getKey(), partitions);
        });
    return target;
  }

  /** As KafkaApis.handle does after each request. */
  private void completeActions() {
    Kafka.call(topic.process.replicaManager, "tryCompleteActions");
  }

  private void fire(Coordinator.Kind kind, JsonNode member) {
    String id = member.isNull() ? null : member.asText();
    for (Coordinator.GroupTimer timer : current.timers(GROUP)) {
      if (timer.kind() == kind && java.util.Objects.equals(timer.memberId(), id)) {
        timer.fire().run();
        completeActions();
        return;
      }
    }
    throw new Broker.Refused("the coordinator has no timer " + kind + (id == null ? "" : " of " + id));
  }

  /** The partition moves to the other broker, which may have had it before. */
  private void failOver() {
    Coordinator old = current;
    current = other;
    other = old;
    epoch++;
    old.resign(epoch);
    current.elect(epoch);
  }

  private void delete() {
    RequestHeader header = new RequestHeader(ApiKeys.DELETE_GROUPS, (short) 2, "admin", 0);
    Object answer =
        GroupRequests.call(current, "deleteGroups", GroupRequests.context(header), List.of(GROUP)).join();
    Errors error = Errors.forCode(((DeletableGroupResultCollection) answer).find(GROUP).errorCode());
    completeActions();
    if (error != Errors.NONE) {
      throw new Broker.Refused("DeleteGroups was answered " + error);
    }
  }

  /** Writes what a view has of the group. */
  private interface GroupPart {
    void write(JsonGenerator out) throws IOException;
  }

  /** [answers since the last view, ...the part of the group]. */
  private String view(GroupPart group) throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.setCodec(json);
      out.writeStartArray();
      out.writeStartArray();
      for (GroupRequests.Answered answered : requests.answered()) {
        out.writeStartArray();
        out.writeNumber(answered.number());
        out.writeBinary(answered.frame());
        out.writeEndArray();
      }
      out.writeEndArray();
      group.write(out);
      out.writeEndArray();
    }
    return text.toString();
  }

  /** The group, its record. */
  private void classicGroup(JsonGenerator out) throws IOException {
    GroupView.write(out, current, GROUP, requests);
    GroupView.record(out, topic.lastGroup());
  }

  /** The group, the committed offset of each partition. */
  private void consumerGroup(JsonGenerator out) throws IOException {
    ShardCoordinator coordinator = (ShardCoordinator) current;
    ConsumerGroupView.write(out, coordinator, GROUP);
    out.writeStartArray();
    for (int partition = 0; partition < partitions; partition++) {
      out.writeNumber(coordinator.committed(GROUP, partition));
    }
    out.writeEndArray();
  }

  /** A group that may change its protocol, in two fields, one of which is null: classic, of KIP-848. */
  private void eitherGroup(JsonGenerator out) throws IOException {
    Object group = current.group(GROUP);
    if (group != null && group.getClass().getSimpleName().equals("ConsumerGroup")) {
      out.writeNull();
      ConsumerGroupView.write(out, (ShardCoordinator) current, GROUP);
    } else {
      GroupView.write(out, current, GROUP, requests);
      out.writeNull();
    }
  }
}
