package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.StringWriter;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetCommitCallback;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.protocol.ApiKeys;

/**
 * What a committing consumer's objects hold, as JSON. It reads fields, and takes no lock that an
 * application keeps which stands still.
 */
final class ConsumerCommitsView {
  private static final int OWN = 0;
  private static final long NO_OFFSET = -1;

  private final ConsumerCommits commits;
  private final ClassicConsumer client;
  private final Object coordinator;

  private ConsumerCommitsView(ConsumerCommits commits) {
    this.commits = commits;
    this.client = commits.client();
    this.coordinator = client.coordinator;
  }

  static String text(ObjectMapper json, ConsumerCommits commits) throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      new ConsumerCommitsView(commits).write(out);
      out.writeEndArray();
    }
    return text.toString();
  }

  private void write(JsonGenerator out) throws IOException {
    writeMembership(out);
    out.writeString(state("findCoordinatorFuture"));
    writeWaiting(out);
    writeSent(out);
    writeEntries(out, Kafka.each(Kafka.get(coordinator, "completedOffsetCommits")));
    writeOutcomes(out);
    out.writeNumber(remainingMs("nextAutoCommitTimer"));
    out.writeString(preJoin());
    out.writeBoolean(remainingMs("joinPrepareTimer") <= 0);
    out.writeBoolean(((AtomicBoolean) Kafka.get(client.client, "wakeup")).get());
    writeCall(out);
    out.writeString(client.application.result());
    out.writeString(commits.lastCallback());
  }

  private void writeMembership(JsonGenerator out) throws IOException {
    out.writeBoolean((boolean) Kafka.get(client.consumer, "closed"));
    out.writeString(Kafka.get(client.subscriptions, "subscriptionType").toString());
    out.writeString(Kafka.get(coordinator, "state").toString());
    out.writeNumber((int) Kafka.get(Kafka.get(coordinator, "generation"), "generationId"));
    out.writeBoolean((boolean) Kafka.get(coordinator, "rejoinNeeded"));
    out.writeBoolean((boolean) Kafka.get(coordinator, "needsJoinPrepare"));
    out.writeString(client.heartbeatThread());
    out.writeString(state("joinFuture"));
    out.writeBoolean(isOwned());
    out.writeNumber(commits.position());
    out.writeBoolean(isOwned() && isPendingRevocation());
    out.writeBoolean(Kafka.get(coordinator, "coordinator") != null);
  }

  private boolean isOwned() {
    return (boolean) Kafka.call(client.subscriptions, "isAssigned", ConsumerCommits.PARTITION);
  }

  private boolean isPendingRevocation() {
    Object state = Kafka.call(client.subscriptions, "assignedState", ConsumerCommits.PARTITION);
    return (boolean) Kafka.get(state, "pendingRevocation");
  }

  /** none, sent, done, failed: of a RequestFuture. */
  private String state(String name) {
    Object future = Kafka.get(coordinator, name);
    if (future == null) {
      return "none";
    }
    if (!(boolean) Kafka.call(future, "isDone")) {
      return "sent";
    }
    return (boolean) Kafka.call(future, "failed") ? "failed" : "done";
  }

  /** The commits that listen to the look-up. */
  private void writeWaiting(JsonGenerator out) throws IOException {
    out.writeStartArray();
    Object lookup = Kafka.get(coordinator, "findCoordinatorFuture");
    if (lookup != null) {
      for (Object listener : Kafka.each(Kafka.get(lookup, "listeners"))) {
        List<Object> of = Kafka.closedOver(listener);
        out.writeStartArray();
        out.writeNumber(idOf(first(OffsetCommitCallback.class, of)));
        out.writeNumber(offsetOf(first(Map.class, of)));
        out.writeEndArray();
      }
    }
    out.writeEndArray();
  }

  private static Object first(Class<?> type, Collection<?> among) {
    return among.stream().filter(type::isInstance).findFirst().orElse(null);
  }

  private static int idOf(Object callback) {
    return callback instanceof ConsumerCommits.UserCallback user ? user.id() : OWN;
  }

  private static long offsetOf(Object offsets) {
    Object offset = ((Map<?, ?>) offsets).get(ConsumerCommits.PARTITION);
    return offset == null ? NO_OFFSET : ((OffsetAndMetadata) offset).offset();
  }

  /** [note, offset, generation] of each commit in flight. */
  private void writeSent(JsonGenerator out) throws IOException {
    out.writeStartArray();
    for (ConsumerNetwork.Flight flight : client.network.inFlight(ApiKeys.OFFSET_COMMIT)) {
      OffsetCommitRequestData commit = (OffsetCommitRequestData) flight.body().data();
      OffsetCommitRequestData.OffsetCommitRequestPartition partition =
          commit.topics().get(0).partitions().get(0);
      out.writeStartArray();
      out.writeString(partition.committedMetadata());
      out.writeNumber(partition.committedOffset());
      out.writeNumber(commit.generationIdOrMemberEpoch());
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  private static void writeEntries(JsonGenerator out, Iterable<?> completions) throws IOException {
    out.writeStartArray();
    for (Object completion : completions) {
      writeEntry(
          out,
          idOf(Kafka.get(completion, "callback")),
          Kafka.get(completion, "offsets"),
          Kafka.get(completion, "exception"));
    }
    out.writeEndArray();
  }

  private void writeOutcomes(JsonGenerator out) throws IOException {
    out.writeStartArray();
    for (ConsumerCommits.Outcome outcome : commits.outcomes()) {
      writeEntry(out, outcome.id(), outcome.offsets(), outcome.error());
    }
    out.writeEndArray();
  }

  private static void writeEntry(JsonGenerator out, int id, Object offsets, Object error)
      throws IOException {
    out.writeStartArray();
    out.writeNumber(id);
    out.writeNumber(offsetOf(offsets));
    out.writeString(Application.nameOf(error));
    out.writeEndArray();
  }

  /** How long until a timer runs out; long if there is none. The timer's own clock may be behind. */
  private long remainingMs(String name) {
    Object timer = Kafka.get(coordinator, name);
    return timer == null
        ? Integer.MAX_VALUE
        : (long) Kafka.get(timer, "deadlineMs") - client.clock.milliseconds();
  }

  /** none, again, sent, or how it ended: of the commit of onJoinPrepare. */
  private String preJoin() {
    Object future = Kafka.get(coordinator, "autoCommitOffsetRequestFuture");
    if (future == null) {
      return Kafka.get(coordinator, "joinPrepareTimer") == null ? "none" : "again";
    }
    if (!(boolean) Kafka.call(future, "isDone")) {
      return "sent";
    }
    boolean isFailed = (boolean) Kafka.call(future, "failed");
    return Application.nameOf(isFailed ? Kafka.call(future, "exception") : null);
  }

  private void writeCall(JsonGenerator out) throws IOException {
    out.writeStartArray();
    out.writeString(commits.call());
    out.writeNumber(commits.callOffset());
    out.writeString(waits());
    out.writeEndArray();
  }

  /** Where the application stands still. */
  private String waits() {
    Application application = client.application;
    if (!application.standsStill()) {
      return "none";
    }
    if (application.standsIn("awaitPendingRequests")) {
      return "pending";
    }
    if (application.standsIn("invokePendingAsyncCommits")) {
      return "callbacks";
    }
    return application.standsIn("ensureCoordinatorReady") ? "lookup" : "answer";
  }
}
