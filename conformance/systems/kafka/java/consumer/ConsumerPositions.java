package kconform;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.ToIntFunction;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.MetadataResponse;

/**
 * The commands of a consumer that reads, with leaders and a coordinator that answer as they say: the
 * actions of ConsumerPositions.tla.
 *
 * <p>Where a group assigns, the group's part of a poll is left out: ConsumerCommits has it. Each
 * partition has a leader of its own, whose id is the partition's number.
 */
final class ConsumerPositions {
  static final String PREFIX = "positions_";
  static final int NONE = -1;
  private static final Uuid TOPIC_ID = new Uuid(1, 3);
  private static final int FIRST_EPOCH = 1;
  /** What leaders are asked, in the order of one poll. */
  private static final List<ApiKeys> ORDER =
      List.of(ApiKeys.OFFSET_FOR_LEADER_EPOCH, ApiKeys.LIST_OFFSETS, ApiKeys.FETCH);

  /** A request to a leader: the command in which it was sent, and the position at that time. */
  record Asked(ConsumerNetwork.Flight flight, int command, long position) {
    int partition() {
      return Integer.parseInt(flight.request().destination());
    }
  }

  private final ObjectMapper json = new ObjectMapper();
  private final Map<Integer, LeaderLog> leaders = new TreeMap<>();
  private final Map<Integer, OffsetAndMetadata> committed = new HashMap<>();
  private final List<Asked> asked = new ArrayList<>();
  private ClassicConsumer client;
  private boolean groupAssigns;
  private int commands;
  private List<TopicPartition> partitions;
  private List<ConsumerRecord<?, ?>> records;
  private Exception error;

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    if (name.equals("positions_view")) {
      return ConsumerPositionsView.text(json, this);
    }
    commands++;
    records = List.of();
    error = null;
    switch (name) {
      case "positions_reset" -> reset(command);
      case "positions_poll" -> poll();
      case "positions_assign" -> assign(command.get("partitions"));
      case "positions_seek" -> seek(partition(command), offset(command.get("target")));
      case "positions_seek_to_edge" -> seekToEdge(command);
      case "positions_pause" -> client.consumer.pause(Set.of(partition(command)));
      case "positions_resume" -> client.consumer.resume(Set.of(partition(command)));
      case "positions_pass_backoff" -> client.clock.sleep(ClassicConsumer.BACKOFF_MS);
      case "positions_answer" -> answer(command.get("place").asInt());
      case "positions_fail" ->
          fail(command.get("place").asInt(), Errors.valueOf(command.get("error").asText()));
      case "positions_answer_lookup" -> answerLookup(command.get("succeeds").asBoolean());
      case "positions_update_metadata" -> updateMetadata(command.get("age").asInt());
      case "positions_elect" -> leader(command).elect(command.get("kept").asInt());
      case "positions_append_record" -> leader(command).append();
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    note();
    return "null";
  }

  private void reset(JsonNode command) {
    if (client != null) {
      client.end();
    }
    groupAssigns = command.get("group_assigns").asBoolean();
    client =
        new ClassicConsumer(
            Map.of(
                "enable.auto.commit", false,
                "max.poll.records", command.get("max_poll").asInt()),
            command.get("policy").asText().toUpperCase(),
            new RangeAssignor(),
            ConsumerPositions::answerAtOnce,
            metadata -> null);
    asked.clear();
    resetLeaders(command);
    // Kept, though nothing is assigned: the specification has it from the beginning.
    Kafka.call(client.metadata, "addTransientTopics", Set.of(Member.TOPIC));
    client.update(metadata(leader -> FIRST_EPOCH));
    if (groupAssigns) {
      client.consumer.subscribe(Set.of(Member.TOPIC));
    }
  }

  private void resetLeaders(JsonNode command) {
    ApiVersions versions = (ApiVersions) Kafka.get(offsetFetcher(), "apiVersions");
    List<Integer> log = new ArrayList<>();
    command.get("log").forEach(one -> log.add(one.asInt()));
    leaders.clear();
    committed.clear();
    partitions = new ArrayList<>();
    for (JsonNode position : command.get("committed")) {
      TopicPartition partition = new TopicPartition(Member.TOPIC, partitions.size() + 1);
      int number = partition.partition();
      partitions.add(partition);
      committed.put(number, offset(position));
      leaders.put(
          number,
          new LeaderLog(
              partition, TOPIC_ID, log, command.get("epoch").asInt(), command.get("max_fetch").asInt()));
      versions.update(String.valueOf(number), NodeApiVersions.create());
    }
  }

  ClassicConsumer client() {
    return client;
  }

  Object offsetFetcher() {
    return Kafka.get(client.consumer, "offsetFetcher");
  }

  List<TopicPartition> partitions() {
    return partitions;
  }

  List<ConsumerRecord<?, ?>> records() {
    return records;
  }

  Exception error() {
    return error;
  }

  // ---- the application ---------------------------------------------------------------------

  private static TopicPartition partition(JsonNode command) {
    return new TopicPartition(Member.TOPIC, command.get("partition").asInt());
  }

  /** Null if there is none. */
  private static OffsetAndMetadata offset(JsonNode position) {
    int offset = position.get("offset").asInt();
    int epoch = position.get("epoch").asInt();
    return offset == NONE
        ? null
        : new OffsetAndMetadata(offset, epoch == 0 ? Optional.empty() : Optional.of(epoch), "");
  }

  private void poll() {
    if (((Set<?>) Kafka.call(client.subscriptions, "assignedPartitions")).isEmpty()) {
      throw new Broker.Refused("nothing is assigned");
    }
    List<Integer> order = buffered();
    try {
      Iterable<?> polled = groupAssigns ? pollWithoutGroup() : client.consumer.poll(Duration.ZERO);
      records = new ArrayList<>();
      for (Object record : polled) {
        records.add((ConsumerRecord<?, ?>) record);
      }
      records.sort(Comparator.comparingInt(record -> order.indexOf(record.partition())));
    } catch (KafkaException raised) {
      error = raised;
    }
    Kafka.call(client.client, "transmitSends");
  }

  /** What is buffered, the next in line first: in this order a poll takes it, and then forgets the order. */
  private List<Integer> buffered() {
    List<Integer> numbers = new ArrayList<>();
    for (Object fetch : fetches()) {
      numbers.add(((TopicPartition) Kafka.get(fetch, "partition")).partition());
    }
    return numbers;
  }

  /** FetchBuffer, the next in line first. */
  List<Object> fetches() {
    Object buffer = Kafka.get(Kafka.get(client.consumer, "fetcher"), "fetchBuffer");
    Object next = Kafka.get(buffer, "nextInLineFetch");
    List<Object> fetches = new ArrayList<>();
    if (next != null && !(boolean) Kafka.call(next, "isConsumed")) {
      fetches.add(next);
    }
    Kafka.each(Kafka.get(buffer, "completedFetches")).forEach(fetches::add);
    return fetches;
  }

  /** KafkaConsumer.poll without ConsumerCoordinator.poll. */
  private List<?> pollWithoutGroup() {
    client.callBack();
    Kafka.call(client.consumer, "updateFetchPositions", client.clock.timer(0));
    Object fetch = Kafka.call(client.consumer, "pollForFetches", client.clock.timer(0));
    if (!(boolean) Kafka.call(fetch, "isEmpty")) {
      Kafka.call(client.consumer, "sendFetches");
    }
    List<Object> all = new ArrayList<>();
    ((Map<?, ?>) Kafka.call(fetch, "records")).values().forEach(some -> all.addAll((List<?>) some));
    return all;
  }

  private void assign(JsonNode numbers) {
    List<TopicPartition> wanted = new ArrayList<>();
    numbers.forEach(number -> wanted.add(new TopicPartition(Member.TOPIC, number.asInt())));
    if (groupAssigns) {
      Kafka.call(client.subscriptions, "assignFromSubscribed", Set.of());
      Kafka.call(client.subscriptions, "assignFromSubscribed", wanted);
    } else {
      client.consumer.assign(wanted);
    }
  }

  private void seek(TopicPartition partition, OffsetAndMetadata target) {
    client.consumer.seek(partition, target);
  }

  private void seekToEdge(JsonNode command) {
    boolean isEarliest = command.get("strategy").asText().equals("earliest");
    if (isEarliest) {
      client.consumer.seekToBeginning(Set.of(partition(command)));
    } else {
      client.consumer.seekToEnd(Set.of(partition(command)));
    }
  }

  // ---- who answers -------------------------------------------------------------------------

  private static AbstractResponse answerAtOnce(ConsumerNetwork.Flight flight) {
    return flight.api() == ApiKeys.FIND_COORDINATOR ? MemberNetwork.coordinatorFound() : null;
  }

  private LeaderLog leader(JsonNode command) {
    return leaders.get(command.get("partition").asInt());
  }

  /** Requests to different leaders have no order: those of one command are put into one here. */
  private void note() {
    List<ConsumerNetwork.Flight> inFlight = client.network.inFlight();
    asked.removeIf(one -> !inFlight.contains(one.flight));
    List<ConsumerNetwork.Flight> known = asked.stream().map(Asked::flight).toList();
    for (ConsumerNetwork.Flight flight : inFlight) {
      if (ORDER.contains(flight.api()) && !known.contains(flight)) {
        int number = Integer.parseInt(flight.request().destination());
        asked.add(new Asked(flight, commands, position(new TopicPartition(Member.TOPIC, number))));
      }
    }
    asked.sort(
        Comparator.comparingInt(Asked::command)
            .thenComparingInt(one -> ORDER.indexOf(one.flight.api()))
            .thenComparingInt(Asked::partition));
  }

  private long position(TopicPartition partition) {
    Object position = Kafka.call(client.subscriptions, "positionOrNull", partition);
    return position == null ? NONE : (long) Kafka.get(position, "offset");
  }

  List<Asked> asked() {
    return asked;
  }

  private Asked asked(int place) {
    if (place > asked.size()) {
      throw new Broker.Refused("there is no request " + place + " in flight");
    }
    return asked.get(place - 1);
  }

  private void answer(int place) {
    Asked one = asked(place);
    answer(one.flight, leaders.get(one.partition()).answer(one.flight.body().data()));
  }

  private void fail(int place, Errors error) {
    Asked one = asked(place);
    if (error == Errors.NETWORK_EXCEPTION) {
      client.network.lose(one.flight);
      client.callBack();
    } else {
      answer(one.flight, leaders.get(one.partition()).failure(one.flight.body().data(), error));
    }
  }

  private void answer(ConsumerNetwork.Flight flight, ApiMessage data) {
    client.network.answer(flight, data);
    client.callBack();
  }

  private void answerLookup(boolean succeeds) {
    List<ConsumerNetwork.Flight> lookups = client.network.inFlight(ApiKeys.OFFSET_FETCH);
    if (lookups.isEmpty()) {
      throw new Broker.Refused("no committed positions are asked for");
    }
    ConsumerNetwork.Flight flight = lookups.get(lookups.size() - 1);
    OffsetFetchRequestData.OffsetFetchRequestGroup request =
        ((OffsetFetchRequestData) flight.body().data()).groups().get(0);
    OffsetFetchResponseData.OffsetFetchResponseGroup group =
        new OffsetFetchResponseData.OffsetFetchResponseGroup().setGroupId(request.groupId());
    if (succeeds) {
      group.setTopics(List.of(committed(request.topics().get(0).partitionIndexes())));
    } else {
      group.setErrorCode(Errors.COORDINATOR_LOAD_IN_PROGRESS.code());
    }
    answer(flight, new OffsetFetchResponseData().setGroups(List.of(group)));
  }

  private OffsetFetchResponseData.OffsetFetchResponseTopics committed(List<Integer> numbers) {
    List<OffsetFetchResponseData.OffsetFetchResponsePartitions> all = new ArrayList<>();
    for (int number : numbers) {
      OffsetAndMetadata position = committed.get(number);
      all.add(
          new OffsetFetchResponseData.OffsetFetchResponsePartitions()
              .setPartitionIndex(number)
              .setCommittedOffset(position == null ? NONE : position.offset())
              .setCommittedLeaderEpoch(
                  position == null ? NONE : position.leaderEpoch().orElse(NONE))
              .setMetadata(""));
    }
    return new OffsetFetchResponseData.OffsetFetchResponseTopics()
        .setName(Member.TOPIC)
        .setPartitions(all);
  }

  private void updateMetadata(int age) {
    client.update(metadata(leader -> Math.max(leader.epoch() - age, FIRST_EPOCH)));
  }

  private MetadataResponse metadata(ToIntFunction<LeaderLog> epochs) {
    MetadataResponseData data = new MetadataResponseData();
    MetadataResponseData.MetadataResponseTopic topic =
        new MetadataResponseData.MetadataResponseTopic().setName(Member.TOPIC).setTopicId(TOPIC_ID);
    for (Map.Entry<Integer, LeaderLog> each : leaders.entrySet()) {
      int number = each.getKey();
      topic
          .partitions()
          .add(
              new MetadataResponseData.MetadataResponsePartition()
                  .setPartitionIndex(number)
                  .setLeaderId(number)
                  .setLeaderEpoch(epochs.applyAsInt(each.getValue()))
                  .setReplicaNodes(List.of(number))
                  .setIsrNodes(List.of(number)));
      data.brokers()
          .add(
              new MetadataResponseData.MetadataResponseBroker()
                  .setNodeId(number)
                  .setHost("127.0.0.1")
                  .setPort(9092));
    }
    data.topics().add(topic);
    return new MetadataResponse(data, ApiKeys.METADATA.latestVersion());
  }
}
