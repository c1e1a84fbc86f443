package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Drives Kafka's classes as a harness says: lines of commands in, lines of answers out.
 *
 * <p>A line is {"id": number, "commands": [{"command": name, ...}, ...]}, its answer {"id": number,
 * "answers": [...]} with {"ok": value}, {"refused": why} or {"exception": trace} for each; nothing
 * is done after a command that went wrong. The bridge decides nothing: what a controller says,
 * which message arrives when and what time it is are the commands.
 */
public final class Bridge {
  private final ObjectMapper json = new ObjectMapper();
  private final File folder;
  private final Map<Integer, Broker> brokers = new LinkedHashMap<>();
  private MetadataVersion version;
  private final Members members = new Members();
  private final ConsumerMembers consumers = new ConsumerMembers();
  private Groups groups;
  private Runtimes runtimes;
  private Produces produces;
  private Transactions transactions;
  private TransactionalLogs transactionalLogs;
  private Loads loads;
  private SharePartitions shares;
  private ShareStates shareStates;
  private final TransactionalProducer producer = new TransactionalProducer();
  private CompactedLogs compactedLogs;
  private StorageEvents storageEvents;
  private DirectoryMoves directoryMoves;
  private Reassignments reassignments;
  private final ConsumerCommits commits = new ConsumerCommits();
  private final ConsumerPositions positions = new ConsumerPositions();
  private final ConsumerTopics topics = new ConsumerTopics();

  private Bridge(File folder) {
    this.folder = folder;
  }

  /** The argument is a folder for the brokers' disks. The caller makes it; it goes with us. */
  public static void main(String[] arguments) throws IOException {
    OutputStream out = new FileOutputStream(FileDescriptor.out); // a line is one write
    System.setOut(System.err); // whatever prints must not come between the answers
    File folder = new File(arguments[0]);
    // A caller that is killed cannot remove it, and the folder may be in memory.
    Runtime.getRuntime().addShutdownHook(new Thread(() -> remove(folder)));
    Bridge bridge = new Bridge(folder);
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.write(bridge.answer(line));
    }
    System.exit(0); // threads of Kafka's metrics are not daemons in every version
  }

  private static void remove(File folder) {
    try {
      Utils.delete(folder);
    } catch (IOException error) {
      System.err.println("The folder " + folder + " is left: " + error);
    }
  }

  // ---- lines -------------------------------------------------------------------------------

  private byte[] answer(String line) throws IOException {
    JsonNode asked = json.readTree(line);
    ByteArrayOutputStream text = new ByteArrayOutputStream();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartObject();
      out.writeNumberField("id", asked.get("id").asLong());
      out.writeArrayFieldStart("answers");
      for (JsonNode command : asked.get("commands")) {
        if (!answer(command, out)) {
          break;
        }
      }
      out.writeEndArray();
      out.writeEndObject();
      out.writeRaw('\n');
    }
    return text.toByteArray();
  }

  /** Whether all went well. */
  private boolean answer(JsonNode command, JsonGenerator out) throws IOException {
    out.writeStartObject();
    try {
      String value = run(command);
      out.writeFieldName("ok");
      out.writeRawValue(value);
      return true;
    } catch (Broker.Refused refusal) {
      out.writeStringField("refused", refusal.getMessage());
      return false;
    } catch (Throwable error) {
      StringWriter trace = new StringWriter();
      error.printStackTrace(new PrintWriter(trace));
      out.writeStringField("exception", trace.toString());
      return false;
    } finally {
      out.writeEndObject();
    }
  }

  // ---- commands ----------------------------------------------------------------------------

  private String run(JsonNode command) throws Exception {
    String name = command.get("command").asText();
    if (name.startsWith(Groups.PREFIX)) {
      return groups().run(name, command);
    }
    if (name.startsWith(Runtimes.PREFIX)) {
      return runtimes().run(name, command);
    }
    if (name.startsWith(Produces.PREFIX)) {
      return produces().run(name, command);
    }
    if (name.startsWith(TransactionalProducer.PREFIX)) {
      return producer.run(name, command);
    }
    if (name.startsWith(Transactions.PREFIX)) {
      return transactions().run(name, command);
    }
    if (name.startsWith(TransactionalLogs.PREFIX)) {
      return transactionalLogs().run(name, command);
    }
    if (name.startsWith(Members.PREFIX)) {
      return members.run(name, command);
    }
    if (name.startsWith(ConsumerMembers.PREFIX)) {
      return consumers.run(name, command);
    }
    if (name.startsWith(Loads.PREFIX)) {
      return loads().run(name, command);
    }
    if (name.startsWith(SharePartitions.PREFIX)) {
      return shares().run(name, command);
    }
    if (name.startsWith(ShareStates.PREFIX)) {
      return shareStates().run(name, command);
    }
    if (name.startsWith(CompactedLogs.PREFIX)) {
      return compactedLogs().run(name, command);
    }
    if (name.startsWith(Reassignments.PREFIX)) {
      return reassignments().run(name, command);
    }
    if (name.startsWith(DirectoryMoves.PREFIX)) {
      return directoryMoves().run(name, command);
    }
    if (name.startsWith(StorageEvents.PREFIX)) {
      return storageEvents().run(name, command);
    }
    if (name.startsWith(ConsumerCommits.PREFIX)) {
      return commits.run(name, command);
    }
    if (name.startsWith(ConsumerPositions.PREFIX)) {
      return positions.run(name, command);
    }
    if (name.startsWith(ConsumerTopics.PREFIX)) {
      return topics.run(name, command);
    }
    switch (name) {
      case "hello" -> {
        return json.writeValueAsString((String) Kafka.callStatic(Kafka.type("AppInfoParser"), "getVersion"));
      }
      case "reset" -> reset(command);
      case "view" -> {
        return views(command.get("brokers"));
      }
      case "handle" -> broker(command, "follower").handle(broker(command, "leader"));
      case "read" -> {
        return json.writeValueAsString(broker(command, "follower").read(broker(command, "leader")));
      }
      case "count" -> broker(command, "follower").count(broker(command, "leader"));
      case "do_work" -> {
        return json.writeValueAsString(doWork(broker(command, "broker"), command.get("lost").asBoolean()));
      }
      default -> {
        return step(name, broker(command, "broker"), command);
      }
    }
    return "null";
  }

  private Groups groups() {
    if (groups == null) {
      groups = new Groups(folder);
    }
    return groups;
  }

  private Runtimes runtimes() {
    if (runtimes == null) {
      runtimes = new Runtimes(folder);
    }
    return runtimes;
  }

  private Produces produces() {
    if (produces == null) {
      produces = new Produces(folder);
    }
    return produces;
  }

  private Transactions transactions() {
    if (transactions == null) {
      transactions = new Transactions(folder);
    }
    return transactions;
  }

  private TransactionalLogs transactionalLogs() {
    if (transactionalLogs == null) {
      transactionalLogs = new TransactionalLogs(folder);
    }
    return transactionalLogs;
  }

  private Loads loads() {
    if (loads == null) {
      loads = new Loads();
    }
    return loads;
  }

  private SharePartitions shares() {
    if (shares == null) {
      shares = new SharePartitions(folder);
    }
    return shares;
  }

  private ShareStates shareStates() {
    if (shareStates == null) {
      shareStates = new ShareStates();
    }
    return shareStates;
  }

  private CompactedLogs compactedLogs() {
    if (compactedLogs == null) {
      compactedLogs = new CompactedLogs(folder);
    }
    return compactedLogs;
  }

  private Reassignments reassignments() {
    if (reassignments == null) {
      reassignments = new Reassignments(folder);
    }
    return reassignments;
  }

  private DirectoryMoves directoryMoves() {
    if (directoryMoves == null) {
      directoryMoves = new DirectoryMoves(folder);
    }
    return directoryMoves;
  }

  private StorageEvents storageEvents() {
    if (storageEvents == null) {
      storageEvents = new StorageEvents(folder);
    }
    return storageEvents;
  }

  private String step(String name, Broker broker, JsonNode command) throws Exception {
    Object value = null;
    switch (name) {
      case "hear" -> broker.hear(record(command));
      case "append" -> value = broker.append();
      case "delete_records" -> broker.deleteRecords(command.get("offset").asLong());
      case "change_isr" -> value = broker.proposes(() -> change(broker, command));
      case "rehearse" ->
          value = broker.rehearse(command.get("follower").asInt(), command.get("expand").asBoolean());
      case "complete" ->
          broker.complete(command.get("error").asText(), command.get("partition_epoch").asInt());
      case "truncate" -> broker.truncateToHighWatermark();
      case "send_epoch_request" -> broker.sendEpochRequest();
      case "send_fetch" -> broker.sendFetch();
      case "process" -> broker.processAnswer();
      case "lose" -> broker.loseMessage();
      case "next_steps" -> value = broker.nextSteps();
      case "backs_off" -> value = broker.backsOff();
      case "end_back_off" -> broker.endBackOff();
      case "crash" ->
          broker.crash(command.get("log_end").asLong(), command.get("high_watermark").asLong());
      case "restart" -> broker.restart();
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
    return json.writeValueAsString(value);
  }

  /** A turn of the fetcher's loop; its requests are answered at once, or lost. */
  private Fetcher.Turn doWork(Broker follower, boolean lost) {
    return follower.doWork(
        id -> {
          Broker leader = brokers.get(id);
          return lost || !leader.online ? null : leader.process;
        });
  }

  private static void change(Broker broker, JsonNode command) {
    broker.changeIsr(command.get("follower").asInt(), command.get("expand").asBoolean());
  }

  private Broker broker(JsonNode command, String member) {
    return brokers.get(command.get(member).asInt());
  }

  /** New processes on empty disks; the followers' first round, which truncates nothing, is over. */
  private void reset(JsonNode command) throws Exception {
    for (Broker broker : brokers.values()) {
      broker.end();
    }
    YammerMetrics.clear();
    MetadataVersion asked = version(command.get("metadata_version"));
    int count = command.get("brokers").asInt();
    if (brokers.size() != count || !asked.equals(version)) {
      version = asked;
      start(IntStream.rangeClosed(1, count).boxed().toList());
    }
    for (Map.Entry<Integer, Broker> each : brokers.entrySet()) {
      each.getValue().reset();
    }
  }

  private void start(List<Integer> ids) {
    brokers.clear();
    for (int id : ids) {
      brokers.put(id, new Broker(id, new File(folder, "broker-" + id), ids, version));
    }
  }

  private static MetadataVersion version(JsonNode name) {
    return name.isNull() ? MetadataVersion.latestProduction() : MetadataVersion.valueOf(name.asText());
  }

  private PartitionRecord record(JsonNode command) {
    List<Integer> isr = new ArrayList<>();
    command.get("isr").forEach(member -> isr.add(member.asInt()));
    return new PartitionRecord()
        .setTopicId(Metadata.TOPIC_ID)
        .setPartitionId(0)
        .setReplicas(List.copyOf(brokers.keySet()))
        .setIsr(isr)
        .setLeader(command.get("leader").asInt())
        .setLeaderEpoch(command.get("leader_epoch").asInt())
        .setPartitionEpoch(command.get("partition_epoch").asInt());
  }

  /** Each broker's view as a string of JSON: whoever has seen it before need not parse it. */
  private String views(JsonNode which) throws IOException {
    List<Integer> all = List.copyOf(brokers.keySet());
    List<String> views = new ArrayList<>();
    for (JsonNode id : which) {
      StringWriter text = new StringWriter();
      try (JsonGenerator out = json.getFactory().createGenerator(text)) {
        View.write(out, brokers.get(id.asInt()), all);
      }
      views.add(text.toString());
    }
    return json.writeValueAsString(views);
  }
}
