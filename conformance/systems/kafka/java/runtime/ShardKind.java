package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;

/** What a runtime's shard is, in a model: how it is made, what its writes do, and how it looks. */
interface ShardKind {
  /** A CoordinatorShardBuilder. */
  Object builder();

  /** max.message.bytes, if so many records of plain size fill a batch. */
  int batchBytes(int records);

  /** What a write of a kind gives: a CoordinatorResult. Throws what its caller is told. */
  Object write(Object shard, JsonNode kind, int number, int maxBatch);

  /** Serializer. */
  byte[] key(Object record);

  byte[] value(Object record);

  /** Deserializer. */
  Object record(ByteBuffer key, ByteBuffer value);

  /** Tells a runtime what it has to know before it is elected. */
  default void prepare(Object runtime) {}

  /** The keys of the timers that models see, by the models' names of them. */
  Map<String, String> timerKeys();

  /** What the operation of a timer is of; it was set when there were so many writes. */
  int setFor(Object operation, int writes);

  /** Key and value of a record, as one JSON value. */
  void entry(JsonGenerator out, Object record) throws IOException;

  /** The state at an offset, as one JSON value. Long.MAX_VALUE: the latest. */
  void memory(JsonGenerator out, Object shard, long offset) throws IOException;
}
