package kconform;

/**
 * Producer ids and epochs as one count, in the order in which a producer is given them.
 *
 * <p>It begins with an epoch of the first id. A transaction that is decided in the last epoch that a
 * client may have, 32766, has epoch 32767; then comes epoch 0 of the next id.
 */
final class ProducerEpochs {
  private static final long FIRST_ID = ProducerClient.PRODUCER_ID;
  private static final int DECISION = Short.MAX_VALUE;

  private final int first;
  private long newest = FIRST_ID - 1;

  /** `last` is the number of the last epoch of the first id; -1: it is far away. */
  ProducerEpochs(int last) {
    first = last < 0 ? 0 : DECISION - 1 - last;
  }

  private boolean isOfNext(int number) {
    return first + number > DECISION;
  }

  long id(int number) {
    return isOfNext(number) ? FIRST_ID + 1 : FIRST_ID;
  }

  short epoch(int number) {
    return (short) (isOfNext(number) ? first + number - DECISION - 1 : first + number);
  }

  /** An epoch below 0 is none. */
  int number(long id, int epoch) {
    if (epoch < 0) {
      return epoch;
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
    return ++newest;
  }

  /** Ids of which a partition may know an epoch, the newest first. */
  long[] ids() {
    return first > 0 ? new long[] {FIRST_ID + 1, FIRST_ID} : new long[] {FIRST_ID};
  }
}
