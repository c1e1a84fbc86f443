package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * A shard of values by key that may be written in transactions, as OffsetMetadataManager keeps
 * offsets, in timeline maps of Kafka's.
 */
final class TransactionalStoreShard implements InvocationHandler {
  private static final long NO_PRODUCER = -1;

  /** A value, and the offset of its record. */
  private record ValueAt(int value, long offset) {}

  private record Place(long producer, String key) {}

  private final TimelineHashMap<String, ValueAt> values;
  private final TimelineHashMap<Place, ValueAt> pending;

  TransactionalStoreShard(SnapshotRegistry registry) {
    values = new TimelineHashMap<>(registry, 2);
    pending = new TimelineHashMap<>(registry, 2);
  }

  /** CoordinatorShard: of its methods those of records and markers do something. */
  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) {
    switch (method.getName()) {
      case "replay" -> replay((long) arguments[0], (long) arguments[1], (StoreShard.Entry) arguments[3]);
      case "replayEndTransactionMarker" -> end((long) arguments[0], arguments[2] == TransactionResult.COMMIT);
      default -> {}
    }
    return null;
  }

  /** OffsetMetadataManager.replay. */
  private void replay(long offset, long producer, StoreShard.Entry entry) {
    if (entry.value() == null) {
      values.remove(entry.key());
      List.copyOf(pending.keySet()).stream()
          .filter(place -> place.key.equals(entry.key()))
          .forEach(pending::remove);
    } else if (producer == NO_PRODUCER) {
      values.put(entry.key(), new ValueAt(entry.value(), offset));
    } else {
      pending.put(new Place(producer, entry.key()), new ValueAt(entry.value(), offset));
    }
  }

  /** OffsetMetadataManager.replayEndTransactionMarker. */
  private void end(long producer, boolean commits) {
    for (Place place : List.copyOf(pending.keySet())) {
      if (place.producer == producer) {
        ValueAt ended = pending.remove(place);
        ValueAt current = values.get(place.key);
        if (commits && (current == null || ended.offset > current.offset)) {
          values.put(place.key, ended);
        }
      }
    }
  }

  /** [[key, value, offset]..., [producer, key, value, offset]...], both in lists. */
  private void view(JsonGenerator out, long offset) throws IOException {
    out.writeStartArray();
    out.writeStartArray();
    for (Map.Entry<String, ValueAt> entry : values.entrySet(offset)) {
      out.writeStartArray();
      out.writeString(entry.getKey());
      value(out, entry.getValue());
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeStartArray();
    for (Map.Entry<Place, ValueAt> entry : new ArrayList<>(pending.entrySet(offset))) {
      out.writeStartArray();
      out.writeNumber(entry.getKey().producer);
      out.writeString(entry.getKey().key);
      value(out, entry.getValue());
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeEndArray();
  }

  private static void value(JsonGenerator out, ValueAt value) throws IOException {
    out.writeNumber(value.value);
    out.writeNumber(value.offset);
  }

  /** Shards of this kind. */
  static final class Kind extends StoreShard.Kind {
    Kind() {
      super(false);
    }

    @Override
    InvocationHandler shard(Map<String, Object> given) {
      return new TransactionalStoreShard(registry(given));
    }

    @Override
    public Object write(Object shard, JsonNode kind, int number, int maxBatch) {
      List<StoreShard.Entry> entries = StoreShard.entries(kind.asText(), number, maxBatch);
      return Kafka.make(Kafka.type(PACKAGE + "CoordinatorResult"), entries, number, null, true, true);
    }

    @Override
    public void memory(JsonGenerator out, Object shard, long offset) throws IOException {
      ((TransactionalStoreShard) Proxy.getInvocationHandler(shard)).view(out, offset);
    }
  }
}
