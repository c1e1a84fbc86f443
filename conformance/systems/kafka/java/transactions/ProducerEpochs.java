package kconform;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.IntSupplier;

/**
 * Producer ids and epochs as one count, in the order in which a producer is given them.
 *
 * <p>It begins with an epoch of the first id. A transaction that is decided in the last epoch that a
 * client may have, 32766, has epoch 32767; then comes epoch 0 of the next id.
 *
 * <p>If the transactional id may be forgotten, each producer id has `ofId` numbers, and its place is
 * how many tombstones the log had when it was given. Of two in one place the first one is lost with
 * its coordinator: nobody was told of it.
 */
final class ProducerEpochs {
  private static final long FIRST_ID = ProducerClient.PRODUCER_ID;
  private static final int DECISION = Short.MAX_VALUE;

  private final int first;
  private final int ofId;
  private final IntSupplier tombstones;
  private final Map<Long, Integer> places = new LinkedHashMap<>();
  private long newest = FIRST_ID - 1;

  /**
   * `last` is the number of the last epoch of the first id; -1: it is far away. `ofId` is -1 if the
   * transactional id is never forgotten.
   */
  ProducerEpochs(int last, int ofId, IntSupplier tombstones) {
    first = last < 0 ? 0 : DECISION - 1 - last;
    this.ofId = ofId;
    this.tombstones = tombstones;
  }

  private boolean expires() {
    return ofId > 0;
  }

  private boolean isOfNext(int number) {
    return first + number > DECISION;
  }

  long id(int number) {
    if (expires()) {
      return places.keySet().stream()
          .filter(id -> places.get(id) == number / ofId)
          .mapToLong(id -> id)
          .max()
          .orElseThrow();
    }
    return isOfNext(number) ? FIRST_ID + 1 : FIRST_ID;
  }

  short epoch(int number) {
    if (expires()) {
      return (short) (number % ofId);
    }
    return (short) (isOfNext(number) ? first + number - DECISION - 1 : first + number);
  }

  /** An epoch below 0 is none. */
  int number(long id, int epoch) {
    if (epoch < 0) {
      return epoch;
    }
    if (expires()) {
      return places.get(id) * ofId + epoch;
    }
    return id == FIRST_ID ? epoch - first : DECISION - first + 1 + epoch;
  }

  /** Of what has a producer id and an epoch. */
  int numberOf(Object of) {
    return number(
        Kafka.number(Kafka.call(of, "producerId")), (short) Kafka.call(of, "producerEpoch"));
  }

  /** ProducerIdManager.generateProducerId. */
  long generate() {
    places.put(++newest, tombstones.getAsInt());
    return newest;
  }

  /** Ids of which a partition may know an epoch, the newest first. */
  long[] ids() {
    if (expires()) {
      return places.keySet().stream().mapToLong(id -> -id).sorted().map(id -> -id).toArray();
    }
    return first > 0 ? new long[] {FIRST_ID + 1, FIRST_ID} : new long[] {FIRST_ID};
  }
}
