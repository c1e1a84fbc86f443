package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.MetadataResponse;

/**
 * The commands of a member and the topics that it knows, with a group and a cluster that do as they
 * say: the actions of ConsumerTopics.tla.
 *
 * <p>A consumer's metadata is of the topics that it asks for; the specification's is of all topics.
 * So all are kept here. ConsumerCoordinator takes a snapshot when metadata comes, and the
 * specification one whenever it compares. So metadata comes once more before each poll, and before
 * a leader assigns; it shows what it showed before.
 */
final class ConsumerTopics {
  static final String PREFIX = "topics_";
  private static final String RAISED = "raised";

  /** What a callback of the application raises when it was told to. */
  private static final class RaisedByApplication extends RuntimeException {
    private static final long serialVersionUID = 1L;
  }

  /** A call of ConsumerRebalanceListener in the last step. */
  private record Call(String name, Collection<TopicPartition> partitions) {}

  private final class Listener implements ConsumerRebalanceListener {
    private void called(String name, Collection<TopicPartition> partitions) {
      calls.add(new Call(name, List.copyOf(partitions)));
      if (fails) {
        fails = false;
        calls.add(new Call(RAISED, List.of()));
        throw new RaisedByApplication();
      }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
      called("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
      called("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
      called("lost", partitions);
    }
  }

  private final ObjectMapper json = new ObjectMapper();
  private final Listener listener = new Listener();
  private final List<Call> calls = new ArrayList<>();
  private boolean fails;
  private ClassicConsumer client;
  private ConsumerPartitionAssignor assignor;
  private List<String> others;
  private Set<String> topics;
  private Map<String, Integer> counts;
  private Map<String, Integer> cluster;
  private int generation;
  private Errors heartbeat;
  private Set<TopicPartition> granted;

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    if (name.equals("topics_view")) {
      return view();
    }
    calls.clear();
    switch (name) {
      case "topics_reset" -> reset(command);
      case "topics_poll" -> poll();
      case "topics_subscribe" ->
          client.consumer.subscribe(texts(command.get("topics")), listener);
      case "topics_subscribe_pattern" ->
          client.consumer.subscribe(pattern(texts(command.get("topics"))), listener);
      case "topics_fail_callback" -> fails = true;
      case "topics_add_partition" -> cluster.merge(command.get("topic").asText(), 1, Integer::sum);
      case "topics_update_metadata" -> {
        counts = new TreeMap<>(cluster);
        client.update(metadata());
      }
      case "topics_answer_join" ->
          answerJoin(command.get("role").asText().equals("leader"), command.get("share").asText());
      case "topics_hear_rebalance" -> hear(Errors.REBALANCE_IN_PROGRESS);
      case "topics_hear_end" -> hear(Errors.UNKNOWN_MEMBER_ID);
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    client.rest();
    return "null";
  }

  private void reset(JsonNode command) {
    if (client != null) {
      client.end();
    }
    topics = texts(command.get("topics"));
    others = List.copyOf(texts(command.get("others")));
    cluster = new TreeMap<>();
    others.forEach(topic -> cluster.put(topic, 1));
    counts = new TreeMap<>(cluster);
    fails = false;
    generation = 0;
    heartbeat = Errors.NONE;
    granted = Set.of();
    boolean isCooperative = command.get("cooperative").asBoolean();
    assignor = isCooperative ? new CooperativeStickyAssignor() : new RangeAssignor();
    client =
        new ClassicConsumer(
            Map.of("enable.auto.commit", false),
            "EARLIEST",
            assignor,
            this::answerAtOnce,
            metadata -> (boolean) Kafka.call(metadata, "updateRequested") ? metadata() : null);
    Kafka.call(client.metadata, "addTransientTopics", topics);
    client.update(metadata());
    Kafka.call(client.coordinator, "ensureCoordinatorReady", client.clock.timer(0));
  }

  private static Set<String> texts(JsonNode array) {
    Set<String> texts = new TreeSet<>();
    array.forEach(one -> texts.add(one.asText()));
    return texts;
  }

  private static Pattern pattern(Set<String> topics) {
    return Pattern.compile(topics.stream().map(Pattern::quote).collect(Collectors.joining("|")));
  }

  // ---- the application ---------------------------------------------------------------------

  /** KafkaConsumer.poll, up to the positions. */
  private void poll() {
    client.update(metadata());
    boolean isTold = false;
    try {
      Kafka.call(client.coordinator, "poll", client.clock.timer(0), false);
    } catch (KafkaException error) {
      isTold = error.getCause() instanceof RaisedByApplication;
      if (!isTold) {
        throw error;
      }
    }
    boolean isRaised = calls.stream().anyMatch(call -> call.name.equals(RAISED));
    if (isRaised != isTold) {
      throw new IllegalStateException("a callback has raised, and the application was not told");
    }
  }

  // ---- the cluster, and the group ----------------------------------------------------------

  private MetadataResponse metadata() {
    MetadataResponseData data = new MetadataResponseData();
    data.brokers()
        .add(new MetadataResponseData.MetadataResponseBroker().setNodeId(0).setHost("127.0.0.1").setPort(9092));
    counts.forEach((name, count) -> data.topics().add(topic(name, count)));
    return new MetadataResponse(data, ApiKeys.METADATA.latestVersion());
  }

  private static MetadataResponseData.MetadataResponseTopic topic(String name, int partitions) {
    MetadataResponseData.MetadataResponseTopic topic =
        new MetadataResponseData.MetadataResponseTopic()
            .setName(name)
            .setTopicId(new Uuid(1, name.hashCode()));
    for (int i = 0; i < partitions; i++) {
      topic
          .partitions()
          .add(
              new MetadataResponseData.MetadataResponsePartition()
                  .setPartitionIndex(i)
                  .setLeaderId(0)
                  .setReplicaNodes(List.of(0))
                  .setIsrNodes(List.of(0)));
    }
    return topic;
  }

  private AbstractResponse answerAtOnce(ConsumerNetwork.Flight flight) {
    return switch (flight.api()) {
      case FIND_COORDINATOR -> MemberNetwork.coordinatorFound();
      case SYNC_GROUP -> GroupAnswers.synced((SyncGroupRequestData) flight.body().data(), granted);
      case HEARTBEAT -> GroupAnswers.heartbeat(heartbeat);
      default -> null;
    };
  }

  private void answerJoin(boolean leads, String share) {
    ConsumerNetwork.Flight flight = client.network.oldest(ApiKeys.JOIN_GROUP);
    generation++;
    client.update(metadata());
    granted = leads ? Set.of() : shared(share);
    byte[] own = protocol(flight).metadata();
    byte[] other = GroupAnswers.bytes(ConsumerProtocol.serializeSubscription(new Subscription(others)));
    List<JoinGroupResponseData.JoinGroupResponseMember> members =
        leads ? List.of(member(GroupAnswers.MEMBER_ID, own), member(GroupAnswers.OTHER_ID, other)) : List.of();
    client.network.answer(flight, GroupAnswers.joined(flight, generation, assignor.name(), members));
    client.come();
  }

  private static JoinGroupResponseData.JoinGroupResponseMember member(String id, byte[] subscription) {
    return new JoinGroupResponseData.JoinGroupResponseMember().setMemberId(id).setMetadata(subscription);
  }

  private static JoinGroupRequestData.JoinGroupRequestProtocol protocol(ConsumerNetwork.Flight join) {
    return ((JoinGroupRequestData) join.body().data()).protocols().iterator().next();
  }

  /** What another leader gives the member of the topics that it has joined for. */
  private Set<TopicPartition> shared(String share) {
    Set<TopicPartition> all = new HashSet<>();
    for (Object topic : Kafka.each(Kafka.get(client.coordinator, "joinedSubscription"))) {
      int count = cluster.getOrDefault((String) topic, 0);
      for (int i = 0; i < (share.equals("all") ? count : Math.min(count, 1)); i++) {
        all.add(new TopicPartition((String) topic, i));
      }
    }
    return all;
  }

  private void hear(Errors error) {
    heartbeat = error;
    Kafka.call(client.coordinator, "sendHeartbeatRequest");
    client.come();
    heartbeat = Errors.NONE;
  }

  // ---- what is seen ------------------------------------------------------------------------

  private String view() throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.setCodec(json);
      out.writeStartArray();
      write(out);
      out.writeEndArray();
    }
    return text.toString();
  }

  private void write(JsonGenerator out) throws IOException {
    Object coordinator = client.coordinator;
    Object generation = Kafka.get(coordinator, "generation");
    out.writeObject(Kafka.call(client.subscriptions, "subscription"));
    out.writeObject(topics.stream().filter(this::matches).toList());
    out.writeObject(Kafka.get(coordinator, "joinedSubscription"));
    writePartitions(out, claimed());
    out.writeObject(Kafka.get(client.subscriptions, "groupSubscription"));
    out.writeObject(snapshot());
    out.writeBoolean((boolean) Kafka.get(coordinator, "isLeader"));
    out.writeBoolean(
        (int) Kafka.get(generation, "generationId") == -1
            || ((String) Kafka.get(generation, "memberId")).isEmpty());
    out.writeString(joining());
    out.writeBoolean((boolean) Kafka.get(coordinator, "rejoinNeeded"));
    out.writeBoolean((boolean) Kafka.get(coordinator, "needsJoinPrepare"));
    writePartitions(out, Kafka.each(Kafka.call(client.subscriptions, "assignedPartitions")));
    out.writeStartArray();
    for (Call call : calls) {
      out.writeStartArray();
      out.writeString(call.name);
      writePartitions(out, call.partitions);
      out.writeEndArray();
    }
    out.writeEndArray();
    writePartitions(out, granted());
  }

  private boolean matches(String topic) {
    return (boolean) Kafka.call(client.subscriptions, "matchesSubscribedPattern", topic);
  }

  private static void writePartitions(JsonGenerator out, Iterable<?> partitions) throws IOException {
    out.writeStartArray();
    for (Object one : partitions) {
      TopicPartition partition = (TopicPartition) one;
      out.writeStartArray();
      out.writeString(partition.topic());
      out.writeNumber(partition.partition());
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  /** What the JoinGroup that is on its way says of owned partitions. */
  private List<TopicPartition> claimed() {
    return client.network.inFlight(ApiKeys.JOIN_GROUP).stream()
        .map(join -> ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(protocol(join).metadata())))
        .findFirst()
        .map(Subscription::ownedPartitions)
        .orElse(List.of());
  }

  /** By topic how many partitions; null: there is no snapshot. */
  private Map<String, Integer> snapshot() {
    Object snapshot = Kafka.get(client.coordinator, "assignmentSnapshot");
    if (snapshot == null) {
      return null;
    }
    Map<String, Integer> sizes = new TreeMap<>();
    ((Map<?, ?>) Kafka.get(snapshot, "partitionsPerTopic"))
        .forEach((topic, partitions) -> sizes.put((String) topic, ((List<?>) partitions).size()));
    return sizes;
  }

  private String joining() {
    Object future = Kafka.get(client.coordinator, "joinFuture");
    if (future == null) {
      return "none";
    }
    return (boolean) Kafka.call(future, "isDone") ? "answered" : "sent";
  }

  private List<TopicPartition> granted() {
    Object future = Kafka.get(client.coordinator, "joinFuture");
    if (future == null || !(boolean) Kafka.call(future, "succeeded")) {
      return List.of();
    }
    ByteBuffer value = ((ByteBuffer) Kafka.call(future, "value")).duplicate();
    return ConsumerProtocol.deserializeAssignment(value).partitions();
  }
}
