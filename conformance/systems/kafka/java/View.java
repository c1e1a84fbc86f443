package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.requests.ListOffsetsRequest;

/** What is read off a broker's running objects, as plain numbers; nothing is computed. */
final class View {
  static final TopicPartition PARTITION = new TopicPartition(Metadata.TOPIC, 0);
  private static final int NONE = -1;

  private View() {}

  /**
   * Writes one broker as an array, in the order of the adapter's BrokerView up to the message.
   *
   * <p>Of a broker that does not run: what is on its disk.
   */
  static void write(JsonGenerator out, Broker broker, List<Integer> brokers) throws IOException {
    BrokerProcess process = broker.process;
    Object partition = broker.online ? process.partition() : null;
    out.writeStartArray();
    out.writeBoolean(broker.online);
    out.writeNumber(process.epoch);
    registration(out, partition, process.id);
    followers(out, partition, brokers);
    log(out, process.log());
    fetchState(out, broker);
    message(out, broker.trip);
    out.writeEndArray();
  }

  private static void registration(JsonGenerator out, Object partition, int id) throws IOException {
    if (partition == null) {
      out.writeNumber(NONE);
      out.writeNull();
      integers(out, List.of());
      out.writeNumber(0);
      integers(out, List.of());
      return;
    }
    Object leader = Kafka.orNull(Kafka.call(partition, "leaderReplicaIdOpt"));
    Object state = Kafka.call(partition, "partitionState");
    out.writeNumber((int) Kafka.call(partition, "getLeaderEpoch"));
    if (leader == null) {
      out.writeNull();
    } else {
      out.writeNumber((int) leader);
    }
    integers(out, Kafka.call(state, "isr"));
    boolean leads = leader != null && (int) leader == id;
    out.writeNumber(leads ? (int) Kafka.call(partition, "getPartitionEpoch") : 0);
    boolean pending = (boolean) Kafka.call(state, "isInflight");
    integers(out, pending ? isrOf(Kafka.call(state, "sentLeaderAndIsr")) : List.of());
  }

  /** The members of a LeaderAndIsr. */
  static List<Integer> isrOf(Object leaderAndIsr) {
    List<Integer> members = new java.util.ArrayList<>();
    for (Object member : Kafka.each(Kafka.call(leaderAndIsr, "isrWithBrokerEpoch"))) {
      members.add((int) Kafka.call(member, "brokerId"));
    }
    return members;
  }

  private static void followers(JsonGenerator out, Object partition, List<Integer> brokers)
      throws IOException {
    out.writeStartArray();
    for (int broker : brokers) {
      Object replica =
          partition == null ? null : Kafka.orNull(Kafka.call(partition, "getReplica", broker));
      out.writeStartArray();
      if (replica == null) {
        out.writeNumber(NONE);
        out.writeNumber(NONE);
      } else {
        Object state = Kafka.call(replica, "stateSnapshot");
        Object epoch = Kafka.orNull(Kafka.call(state, "brokerEpoch"));
        out.writeNumber((long) Kafka.call(state, "logEndOffset"));
        out.writeNumber(epoch == null ? NONE : Kafka.number(epoch));
      }
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  private static void log(JsonGenerator out, Object log) throws IOException {
    long start = (long) Kafka.call(log, "logStartOffset");
    out.writeStartArray();
    for (Object segment : Kafka.each(Kafka.call(log, "logSegments"))) {
      for (Object batch : batches(segment)) {
        long last = (long) Kafka.call(batch, "lastOffset");
        int epoch = (int) Kafka.call(batch, "partitionLeaderEpoch");
        for (long at = Math.max(start, (long) Kafka.call(batch, "baseOffset")); at <= last; at++) {
          out.writeNumber(epoch);
        }
      }
    }
    out.writeEndArray();
    out.writeNumber(start);
    out.writeNumber((long) Kafka.call(log, "highWatermark"));
    epochs(out, log);
  }

  /** The entries of the log's epoch cache. */
  static void epochs(JsonGenerator out, Object log) throws IOException {
    out.writeStartArray();
    Object cache = Kafka.orNull(Kafka.call(log, "leaderEpochCache"));
    for (Object entry : Kafka.each(Kafka.call(cache, "epochEntries"))) {
      out.writeStartArray();
      out.writeNumber((int) Kafka.get(entry, "epoch"));
      out.writeNumber((long) Kafka.get(entry, "startOffset"));
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  /** A segment's batches, read in one go. */
  private static Iterable<?> batches(Object segment) {
    return Kafka.each(Kafka.call(inMemory(Kafka.call(segment, "log")), "batches"));
  }

  /** Records as they are now: a file's bytes may be cut while an answer is on its way. */
  static Object inMemory(Object records) {
    if (!records.getClass().getSimpleName().equals("FileRecords")) {
      return records;
    }
    int size = (int) Kafka.call(records, "sizeInBytes");
    ByteBuffer buffer = ByteBuffer.allocate(size);
    if (size > 0) {
      Kafka.call(records, "readInto", buffer, 0);
    }
    return Kafka.callStatic(Kafka.type("MemoryRecords"), "readableRecords", buffer);
  }

  /** How many bytes of each segment lie below an offset. */
  static Map<Path, Long> segmentSizesBelow(Object log, long offset) {
    Map<Path, Long> sizes = new LinkedHashMap<>();
    for (Object segment : Kafka.each(Kafka.call(log, "logSegments"))) {
      long size = 0;
      for (Object batch : batches(segment)) {
        if ((long) Kafka.call(batch, "baseOffset") < offset) {
          size += (int) Kafka.call(batch, "sizeInBytes");
        }
      }
      File file = (File) Kafka.call(Kafka.call(segment, "log"), "file");
      sizes.put(file.toPath(), size);
    }
    return sizes;
  }

  private static void fetchState(JsonGenerator out, Broker broker) throws IOException {
    Object state = broker.online ? broker.fetchState() : null;
    if (state != null) {
      String name = Kafka.call(state, "state").toString();
      out.writeString(name.charAt(0) + name.substring(1).toLowerCase(java.util.Locale.ROOT));
      out.writeNumber((long) Kafka.call(state, "fetchOffset"));
    } else {
      boolean failed = broker.online && broker.process.hasFailed(PARTITION);
      out.writeString(failed ? "Failed" : "None");
      out.writeNumber(0);
    }
  }

  // ---- messages ----------------------------------------------------------------------------

  private static void message(JsonGenerator out, Trip trip) throws IOException {
    if (trip == null) {
      out.writeNull();
    } else {
      trip.write(out);
    }
  }

  /** The one partition that a ListOffsets request asks about. */
  static ListOffsetsPartition asked(ListOffsetsRequest request) {
    return request.data().topics().get(0).partitions().get(0);
  }

  static void integers(JsonGenerator out, Object numbers) throws IOException {
    out.writeStartArray();
    for (Object number : Kafka.each(numbers)) { // in the order of a set, which says nothing
      out.writeNumber(Kafka.integer(number));
    }
    out.writeEndArray();
  }
}
