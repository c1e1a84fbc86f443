package kconform;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetCommitCallback;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.OffsetCommitResponse;

/**
 * The commands of a consumer that commits, with a coordinator that answers as they say: the actions of
 * ConsumerCommits.tla.
 *
 * <p>`Begin` and `Consume` move the position, which no record does here.
 */
final class ConsumerCommits {
  static final String PREFIX = "commits_";
  static final TopicPartition PARTITION = new TopicPartition(Member.TOPIC, 0);
  static final String ASYNC = "async ";
  static final String SYNC = "sync";
  private static final String CLOSE = "close";
  private static final long NO_OFFSET = -1;
  private static final int NO_GENERATION = -1;
  private static final Duration CALL_TIMEOUT = Duration.ofMillis(2L * ClassicConsumer.INTERVAL_MS);

  /** What a callback of commitAsync was called with. */
  record Outcome(int id, Map<TopicPartition, OffsetAndMetadata> offsets, Exception error) {}

  /** OffsetCommitCallback of a call of commitAsync. */
  record UserCallback(int id, List<Outcome> outcomes) implements OffsetCommitCallback {
    @Override
    public void onComplete(Map<TopicPartition, OffsetAndMetadata> offsets, Exception error) {
      outcomes.add(new Outcome(id, offsets, error));
    }
  }

  /** Remembers its last call. */
  private static final class Listener implements ConsumerRebalanceListener {
    private String last = "none";

    private void called(String name, Collection<TopicPartition> partitions) {
      if (!Set.copyOf(partitions).equals(Set.of(PARTITION))) {
        throw new IllegalStateException(name + " is called with " + partitions);
      }
      last = name;
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
  private ClassicConsumer client;
  private Listener listener;
  private List<Outcome> outcomes;
  private MetadataResponse topic;
  private long committed;
  private int generation;
  private Errors heartbeat;
  private String call;
  private long callOffset;

  /** Runs a command; its value as JSON. */
  String run(String name, JsonNode command) throws IOException {
    switch (name) {
      case "commits_view" -> {
        return ConsumerCommitsView.text(json, this);
      }
      case "commits_reset" -> reset(command.get("auto_commit").asBoolean());
      case "commits_subscribe" -> client.consumer.subscribe(Set.of(Member.TOPIC), listener);
      case "commits_assign" -> client.consumer.assign(Set.of(PARTITION));
      case "commits_poll" -> client.application.callAtOnce(this::poll);
      case "commits_begin" -> seek(Math.max(committed, 0));
      case "commits_consume" -> consume();
      case "commits_async" -> commitAsync(command.get("id").asInt());
      case "commits_sync" -> commitSync();
      case "commits_unsubscribe" -> client.consumer.unsubscribe();
      case "commits_close" -> close();
      case "commits_wakeup" -> wakeup();
      case "commits_pass_interval" -> client.clock.sleep(ClassicConsumer.INTERVAL_MS);
      case "commits_pass_backoff" -> client.clock.sleep(ClassicConsumer.BACKOFF_MS);
      case "commits_pass_rebalance_timeout" -> client.clock.sleep(ClassicConsumer.REBALANCE_TIMEOUT_MS);
      case "commits_pass_call_timeout" -> passCallTimeout();
      case "commits_answer_lookup" -> answerLookup(command.get("succeeds").asBoolean());
      case "commits_answer_commit" -> answerCommit(Errors.valueOf(command.get("error").asText()));
      case "commits_disconnect" -> disconnect(command.get("taken").asBoolean());
      case "commits_answer_join" -> answerJoin();
      case "commits_hear_rebalance" -> hear(Errors.REBALANCE_IN_PROGRESS);
      case "commits_hear_end" -> {
        generation++;
        hear(Errors.UNKNOWN_MEMBER_ID);
      }
      case "commits_overrun" -> overrunPollInterval();
      case "commits_end_heartbeat_thread" -> endHeartbeatThread(command.get("failure").asText());
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    client.rest();
    if (!client.application.standsStill()) {
      call = "none";
      callOffset = NO_OFFSET;
    }
    return "null";
  }

  private void reset(boolean autoCommit) {
    if (client != null) {
      client.end();
    }
    listener = new Listener();
    outcomes = new ArrayList<>();
    topic = Member.topic(1, new Uuid(1, 3));
    committed = NO_OFFSET;
    generation = 0;
    heartbeat = Errors.NONE;
    client =
        new ClassicConsumer(
            Map.of("enable.auto.commit", autoCommit),
            "EARLIEST",
            new RangeAssignor(),
            this::answerAtOnce,
            metadata -> (boolean) Kafka.call(metadata, "updateRequested") ? topic : null);
  }

  ClassicConsumer client() {
    return client;
  }

  List<Outcome> outcomes() {
    return outcomes;
  }

  String lastCallback() {
    return listener.last;
  }

  String call() {
    return call;
  }

  long callOffset() {
    return callOffset;
  }

  // ---- the application ---------------------------------------------------------------------

  /** KafkaConsumer.poll, up to the positions. */
  private void poll() {
    Kafka.call(client.client, "maybeTriggerWakeup");
    Kafka.call(client.coordinator, "poll", client.clock.timer(0), false);
  }

  private void seek(long offset) {
    client.consumer.seek(PARTITION, offset);
  }

  private void consume() {
    if (!(boolean) Kafka.call(client.subscriptions, "isFetchable", PARTITION)) {
      throw new Broker.Refused("nothing is handed out of the partition");
    }
    seek(position() + 1);
  }

  long position() {
    Object consumed = consumed().get(PARTITION);
    return consumed == null ? NO_OFFSET : ((OffsetAndMetadata) consumed).offset();
  }

  private Map<?, ?> consumed() {
    return (Map<?, ?>) Kafka.call(client.subscriptions, "allConsumed");
  }

  /** What was consumed, with a note of who commits. */
  private Map<TopicPartition, OffsetAndMetadata> offsets(String note) {
    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
    consumed()
        .forEach(
            (partition, consumed) ->
                offsets.put(
                    (TopicPartition) partition,
                    new OffsetAndMetadata(((OffsetAndMetadata) consumed).offset(), note)));
    return offsets;
  }

  private void commitAsync(int id) {
    client.consumer.commitAsync(offsets(ASYNC + id), new UserCallback(id, outcomes));
  }

  private void commitSync() {
    call = SYNC;
    callOffset = position();
    Map<TopicPartition, OffsetAndMetadata> offsets = offsets(SYNC);
    client.application.call(() -> client.consumer.commitSync(offsets, CALL_TIMEOUT));
  }

  private void close() {
    call = CLOSE;
    callOffset = (boolean) Kafka.get(client.coordinator, "autoCommitEnabled") ? position() : NO_OFFSET;
    client.application.call(() -> client.consumer.close(CALL_TIMEOUT));
  }

  private void wakeup() {
    client.consumer.wakeup();
    client.application.goOn();
  }

  private void passCallTimeout() {
    client.clock.sleep(CALL_TIMEOUT.toMillis());
    client.application.goOn();
  }

  // ---- the coordinator ---------------------------------------------------------------------

  /** What the specification leaves out. */
  private AbstractResponse answerAtOnce(ConsumerNetwork.Flight flight) {
    return switch (flight.api()) {
      case SYNC_GROUP ->
          GroupAnswers.synced((SyncGroupRequestData) flight.body().data(), Set.of(PARTITION));
      case LEAVE_GROUP -> GroupAnswers.left();
      case HEARTBEAT -> GroupAnswers.heartbeat(heartbeat);
      default -> null;
    };
  }

  private void answer(ConsumerNetwork.Flight flight, AbstractResponse response) {
    client.network.answer(flight, response);
    client.come();
  }

  private void answerLookup(boolean succeeds) {
    answer(
        client.network.oldest(ApiKeys.FIND_COORDINATOR),
        succeeds ? MemberNetwork.coordinatorFound() : MemberNetwork.noCoordinator());
  }

  private void take() {
    OffsetCommitRequestData commit =
        (OffsetCommitRequestData) client.network.oldest(ApiKeys.OFFSET_COMMIT).body().data();
    int of = commit.generationIdOrMemberEpoch();
    if (of != NO_GENERATION && of != generation) {
      throw new Broker.Refused("the commit is of generation " + of);
    }
    committed = commit.topics().get(0).partitions().get(0).committedOffset();
  }

  private void answerCommit(Errors error) {
    if (error == Errors.NONE) {
      take();
    }
    OffsetCommitResponseData answer = new OffsetCommitResponseData();
    answer
        .topics()
        .add(
            new OffsetCommitResponseData.OffsetCommitResponseTopic()
                .setName(PARTITION.topic())
                .setPartitions(
                    List.of(
                        new OffsetCommitResponseData.OffsetCommitResponsePartition()
                            .setPartitionIndex(PARTITION.partition())
                            .setErrorCode(error.code()))));
    answer(client.network.oldest(ApiKeys.OFFSET_COMMIT), new OffsetCommitResponse(answer));
  }

  /** Who next asks for the coordinator sees that its connection is gone, if no request tells it. */
  private void disconnect(boolean isTaken) {
    if (isTaken) {
      take();
    }
    Object node = Kafka.get(client.coordinator, "coordinator");
    client.network.breakConnection((String) Kafka.call(node, "idString"));
    client.come();
    if (!client.application.standsStill()) {
      Kafka.call(client.coordinator, "coordinatorUnknown");
    }
  }

  private void answerJoin() {
    generation++;
    ConsumerNetwork.Flight flight = client.network.oldest(ApiKeys.JOIN_GROUP);
    answer(flight, GroupAnswers.joined(flight, generation, "range", List.of()));
  }

  // ---- the heartbeat thread ----------------------------------------------------------------

  private void hear(Errors error) {
    heartbeat = error;
    Kafka.call(client.coordinator, "sendHeartbeatRequest");
    client.come();
    heartbeat = Errors.NONE;
  }

  /** What the heartbeat thread decides in one turn. In the next one it would go to sleep. */
  private void overrunPollInterval() {
    demandHeartbeats();
    generation++;
    client.clock.sleep(ClassicConsumer.REBALANCE_TIMEOUT_MS);
    Object watch = Kafka.get(client.coordinator, "heartbeat");
    if (!(boolean) Kafka.call(watch, "pollTimeoutExpired", client.clock.milliseconds())) {
      throw new Broker.Refused("the time between two polls is not over");
    }
    Kafka.call(client.coordinator, "handlePollTimeoutExpiry");
    client.callBack();
  }

  private void demandHeartbeats() {
    if (!client.heartbeats()) {
      throw new Broker.Refused("no heartbeat thread is awake");
    }
  }

  private void endHeartbeatThread(String failure) {
    demandHeartbeats();
    if (failure.equals("authentication")) {
      Kafka.call(
          client.metadata,
          "fatalError",
          new SaslAuthenticationException("who the client is cannot be proved any more"));
    } else {
      client.update(unauthorized());
    }
    client.wakeHeartbeatThread();
    if (client.heartbeats()) {
      throw new Broker.Refused("the heartbeat thread goes on after " + failure);
    }
  }

  private MetadataResponse unauthorized() {
    MetadataResponseData data = topic.data().duplicate();
    data.topics().forEach(one -> one.setErrorCode(Errors.TOPIC_AUTHORIZATION_FAILED.code()));
    return new MetadataResponse(data, ApiKeys.METADATA.latestVersion());
  }
}
