package kconform;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Utils;

/** What lies in a broker's only log directory; and a disk that fails, or loses what it has. */
final class LogDirectory {
  static final String RECOVERY_POINT = "recovery-point-offset-checkpoint";
  static final String LOG_START_OFFSET = "log-start-offset-checkpoint";
  static final String HIGH_WATERMARK = "replication-offset-checkpoint";
  private static final String LEADER_EPOCHS = "leader-epoch-checkpoint";
  private static final String CLEAN_SHUTDOWN = ".kafka_cleanshutdown";
  private static final String LOG = ".log";
  private static final String DELETED = LOG + ".deleted";
  private static final int NO_OFFSET = -1;

  /** Of a batch's header: its base offset and its length are not counted in the length. */
  private static final int LENGTH_AT = 8;
  private static final int EPOCH_AT = 12;

  /** A segment file: the epochs of its records, one a batch. */
  record Segment(long base, List<Integer> records, int durable, boolean torn) {}

  /** An entry of the file of epochs. */
  record EpochEntry(int epoch, long start) {}

  private final Path directory;
  private final Path partition;
  private final int batchBytes;
  private Map<Long, FlushedChannel.Durable> durable = new HashMap<>();
  private boolean fails;

  LogDirectory(File directory, int batchBytes) {
    this.directory = directory.toPath();
    this.partition = this.directory.resolve(View.PARTITION.toString());
    this.batchBytes = batchBytes;
  }

  /** An empty disk. */
  void clear() throws IOException {
    Utils.delete(directory.toFile());
    Files.createDirectories(directory);
    durable.clear();
    fails = false;
  }

  // ---- what is durable -----------------------------------------------------------------------

  /**
   * Counts what is flushed of the log's segments, also of those that were made since.
   *
   * <p>`loaded`: the files were there before. No step flushes a file that it has made.
   */
  void watch(Object log, boolean loaded) throws IOException {
    for (Object segment : Kafka.each(Kafka.call(log, "logSegments"))) {
      Object records = Kafka.call(segment, "log");
      FileChannel channel = (FileChannel) Kafka.call(records, "channel");
      if (channel instanceof FlushedChannel) {
        continue;
      }
      long base = (long) Kafka.call(segment, "baseOffset");
      if (!loaded) {
        durable.remove(base); // of a file of that name that is deleted
      }
      FlushedChannel.Durable bytes =
          durable.computeIfAbsent(base, key -> new FlushedChannel.Durable());
      Kafka.set(records, "channel", new FlushedChannel(channel, bytes, () -> fails));
    }
  }

  /** From now on segment files can be flushed, or cannot. */
  void fail(boolean failing) {
    fails = failing;
  }

  /**
   * What a machine's failure leaves: of one segment, from 1, the first records, and the half of a
   * batch if `torn`. All else survives.
   */
  void losePower(int number, int kept, boolean torn) throws IOException {
    Path file = partition.resolve(name(bases(LOG).get(number - 1)) + LOG);
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      channel.truncate((long) kept * batchBytes + (torn ? batchBytes / 2 : 0));
    }
    for (long base : bases(LOG)) {
      FlushedChannel.Durable bytes = new FlushedChannel.Durable();
      bytes.bytes = Files.size(partition.resolve(name(base) + LOG));
      durable.put(base, bytes);
    }
  }

  /** Where a file of the log cannot be read: its index of transactions is a directory. */
  Path unreadable() {
    return partition.resolve(name(bases(LOG).get(0)) + ".txnindex");
  }

  // ---- what is on it -------------------------------------------------------------------------

  List<Segment> segments() throws IOException {
    List<Segment> found = new ArrayList<>();
    for (long base : bases(LOG)) {
      ByteBuffer file = ByteBuffer.wrap(Files.readAllBytes(partition.resolve(name(base) + LOG)));
      List<Integer> epochs = epochs(file);
      FlushedChannel.Durable bytes = durable.get(base);
      int flushed = bytes == null ? 0 : (int) (bytes.bytes / batchBytes);
      found.add(
          new Segment(base, epochs, Math.min(flushed, epochs.size()), file.hasRemaining()));
    }
    return found;
  }

  /** Of each batch that is whole; what is left in the file is not. */
  private static List<Integer> epochs(ByteBuffer file) {
    List<Integer> epochs = new ArrayList<>();
    while (file.remaining() > EPOCH_AT) {
      int size = EPOCH_AT + file.getInt(file.position() + LENGTH_AT);
      if (size > file.remaining()) {
        break;
      }
      epochs.add(file.getInt(file.position() + EPOCH_AT));
      file.position(file.position() + size);
    }
    return epochs;
  }

  /** Bases of the files that are to be removed. */
  List<Long> deleted() {
    return bases(DELETED);
  }

  private List<Long> bases(String suffix) {
    String[] names = partition.toFile().list();
    return Arrays.stream(names == null ? new String[0] : names)
        .filter(name -> name.endsWith(suffix))
        .map(name -> Long.valueOf(name.substring(0, name.indexOf('.'))))
        .sorted()
        .toList();
  }

  private static String name(long base) {
    return String.format("%020d", base);
  }

  List<EpochEntry> epochFile() throws IOException {
    Path file = partition.resolve(LEADER_EPOCHS);
    if (!Files.exists(file)) {
      return List.of();
    }
    return Files.readAllLines(file).stream() // behind the version and the number of entries
        .skip(2)
        .map(line -> line.split(" "))
        .map(entry -> new EpochEntry(Integer.parseInt(entry[0]), Long.parseLong(entry[1])))
        .toList();
  }

  /** The log's entry in a checkpoint of the directory. */
  long checkpoint(String name) throws IOException {
    Path file = directory.resolve(name);
    String entry = View.PARTITION.topic() + " " + View.PARTITION.partition() + " ";
    if (!Files.exists(file)) {
      return NO_OFFSET;
    }
    return Files.readAllLines(file).stream()
        .filter(line -> line.startsWith(entry))
        .mapToLong(line -> Long.parseLong(line.substring(entry.length())))
        .findFirst()
        .orElse(NO_OFFSET);
  }

  /** Whether the last process shut down in order. */
  boolean isMarked() {
    return Files.exists(directory.resolve(CLEAN_SHUTDOWN));
  }
}
