package kconform.agent;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Reads the state of Kafka's objects by the names of their fields, which 3.8 and 4.4 share but where
 * said. Scala's options, sets and maps and Java's become the same plain values.
 */
final class Snapshots {
    private static final Map<String, Field> FIELDS = new ConcurrentHashMap<>();
    private static final Map<String, Method> METHODS = new ConcurrentHashMap<>();

    private Snapshots() {}

    /** kafka.cluster.Partition with its log and what it knows of its followers. */
    static Map<String, Map<String, Object>> partition(Object partition) throws ReflectiveOperationException {
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("leaderEpoch", read(partition, "leaderEpoch"));
        state.put("leader", opened(read(partition, "leaderReplicaIdOpt")));
        state.put("partitionEpoch", read(partition, "partitionEpoch"));
        Object isr = read(partition, "partitionState");
        state.put("isr", new TreeSet<>(listed(call(isr, "isr"))));
        state.put("maximalIsr", new TreeSet<>(listed(call(isr, "maximalIsr"))));
        boolean inflight = (Boolean) call(isr, "isInflight");
        state.put("isInflight", inflight);
        state.put("sentIsr", inflight ? new TreeSet<>(listed(call(call(isr, "sentLeaderAndIsr"), "isr"))) : List.of());
        Object log = opened(read(partition, "log"));
        state.put("log", log == null ? null : log(log));
        state.put("followers", followers(partition));
        return Map.of("partition " + read(partition, "topicPartition"), state);
    }

    private static Map<String, Object> log(Object log) throws ReflectiveOperationException {
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("logStartOffset", call(log, "logStartOffset"));
        state.put("highWatermark", call(log, "highWatermark"));
        state.put("logEndOffset", call(log, "logEndOffset"));
        Object cache = opened(call(log, "leaderEpochCache"));
        List<Object> entries = new ArrayList<>();
        if (cache != null) {
            for (Object entry : listed(call(cache, "epochEntries"))) {
                entries.add(List.of(read(entry, "epoch"), read(entry, "startOffset")));
            }
        }
        state.put("epochs", entries);
        return state;
    }

    private static Map<String, Object> followers(Object partition) throws ReflectiveOperationException {
        Map<String, Object> found = new TreeMap<>();
        for (Object replica : listed(call(read(partition, "remoteReplicasMap"), "values"))) {
            Object state = call(replica, "stateSnapshot");
            Map<String, Object> follower = new LinkedHashMap<>();
            follower.put("logEndOffset", read(call(state, "logEndOffsetMetadata"), "messageOffset"));
            follower.put("logStartOffset", call(state, "logStartOffset"));
            found.put(call(replica, "brokerId").toString(), follower);
        }
        return found;
    }

    /** What a follower asks for in Partition.fetchRecords(FetchParams, PartitionData, ..., updateFetchState); else nothing. */
    static Map<String, Object> fetch(Object[] arguments) throws ReflectiveOperationException {
        int replica = (Integer) read(arguments[0], "replicaId");
        Map<String, Object> fetch = new LinkedHashMap<>();
        if (replica < 0) {
            return fetch; // a consumer
        }
        fetch.put("replica", replica);
        fetch.put("fetchOffset", read(arguments[1], "fetchOffset"));
        fetch.put("currentLeaderEpoch", opened(read(arguments[1], "currentLeaderEpoch")));
        fetch.put("counts", arguments[arguments.length - 1]);
        return fetch;
    }

    /** What a fetcher thread asks for, of its PartitionFetchState. */
    static Map<String, Object> request(Object fetchState) throws ReflectiveOperationException {
        Map<String, Object> request = new LinkedHashMap<>();
        request.put("fetchOffset", call(fetchState, "fetchOffset"));
        request.put("currentLeaderEpoch", call(fetchState, "currentLeaderEpoch"));
        return request;
    }

    /** Topic id and partition of a PartitionRecord or PartitionChangeRecord; null of any other record. */
    static Map<String, Object> identified(Object record) throws ReflectiveOperationException {
        if (!record.getClass().getSimpleName().matches("Partition(Change)?Record")) {
            return null;
        }
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("topicId", call(record, "topicId"));
        found.put("partition", call(record, "partitionId"));
        return found;
    }

    /** What a ReplicationControlManager has registered of a partition; null of one that it does not know. */
    static Map<String, Object> registration(Object manager, Map<String, Object> of) throws ReflectiveOperationException {
        Map<?, ?> topics = (Map<?, ?>) read(manager, "topics");
        Object topic = of == null ? null : topics.get(of.get("topicId"));
        Object registration = topic == null ? null : ((Map<?, ?>) read(topic, "parts")).get(of.get("partition"));
        if (registration == null) {
            return null;
        }
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("topic", read(topic, "name"));
        state.put("name", read(topic, "name") + "-" + of.get("partition"));
        for (String field : List.of("leader", "leaderEpoch", "partitionEpoch")) {
            state.put(field, read(registration, field));
        }
        for (String field : List.of("isr", "elr", "lastKnownElr")) {
            TreeSet<Integer> brokers = new TreeSet<>();
            for (int broker : (int[]) read(registration, field)) {
                brokers.add(broker);
            }
            state.put(field, brokers);
        }
        return state;
    }

    /** kafka.coordinator.group.GroupMetadata (up to 3.9). */
    static Map<String, Map<String, Object>> group(Object group) throws ReflectiveOperationException {
        Map<String, Object> state = common(group, "pendingMembers", "numMembersAwaitingJoin");
        state.put("leader", opened(read(group, "kafka$coordinator$group$GroupMetadata$$leaderId")));
        Map<String, Object> members = new TreeMap<>();
        for (Object member : listed(call(read(group, "members"), "values"))) {
            members.put(read(member, "memberId").toString(),
                member(member, "awaitingJoinCallback", "awaitingSyncCallback"));
        }
        state.put("members", members);
        return Map.of("group " + read(group, "groupId"), state);
    }

    /** Every ClassicGroup of an org.apache.kafka.coordinator.group.GroupMetadataManager (since 4.0). */
    static Map<String, Map<String, Object>> groups(Object manager) throws ReflectiveOperationException {
        Map<String, Map<String, Object>> found = new TreeMap<>();
        for (Object group : listed(call(read(manager, "groups"), "values"))) {
            if (!group.getClass().getSimpleName().equals("ClassicGroup")) {
                continue;
            }
            Map<String, Object> state = common(group, "pendingJoinMembers", "numMembersAwaitingJoinResponse");
            state.put("leader", opened(read(group, "leaderId")));
            Map<String, Object> members = new TreeMap<>();
            for (Object member : listed(call(read(group, "members"), "values"))) {
                members.put(read(member, "memberId").toString(),
                    member(member, "awaitingJoinFuture", "awaitingSyncFuture"));
            }
            state.put("members", members);
            found.put("group " + read(group, "groupId"), state);
        }
        return found;
    }

    private static Map<String, Object> common(Object group, String pending, String awaiting)
        throws ReflectiveOperationException {
        Map<String, Object> state = new LinkedHashMap<>();
        String name = read(group, "state").toString(); // 3.x: `PreparingRebalance`; 4.x the same
        state.put("state", name);
        state.put("generation", read(group, "generationId"));
        state.put("protocol", opened(read(group, "protocolName")));
        state.put("pendingMembers", texts(read(group, pending)));
        state.put("pendingSyncMembers", texts(read(group, "pendingSyncMembers")));
        state.put("awaitingJoin", read(group, awaiting));
        state.put("newMemberAdded", read(group, "newMemberAdded"));
        state.put("staticMembers", mapped(read(group, "staticMembers")));
        return state;
    }

    private static Map<String, Object> member(Object member, String join, String sync)
        throws ReflectiveOperationException {
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("clientId", read(member, "clientId"));
        state.put("groupInstanceId", opened(read(member, "groupInstanceId")));
        state.put("isNew", read(member, "isNew"));
        state.put("awaitingJoin", read(member, join) != null);
        state.put("awaitingSync", read(member, sync) != null);
        List<Object> protocols = new ArrayList<>();
        for (Object protocol : listed(read(member, "supportedProtocols"))) {
            // A pair in 3.x, a JoinGroupRequestProtocol since 4.0.
            boolean pair = protocol.getClass().getSimpleName().equals("Tuple2");
            protocols.add(call(protocol, pair ? "_1" : "name"));
        }
        state.put("protocols", protocols);
        state.put("assignment", Base64.getEncoder().encodeToString((byte[]) read(member, "assignment")));
        return state;
    }

    /** What arguments tell of an operation: texts, numbers, and the ids in a request. */
    static List<Object> described(Object[] arguments) {
        List<Object> found = new ArrayList<>();
        for (Object argument : arguments) {
            Object value = opened(argument);
            if (value instanceof String || value instanceof Number) {
                found.add(value);
            } else if (value != null && value.getClass().getSimpleName().matches(".*(RequestData|RequestContext|Group)")) {
                found.add(ids(value));
            }
        }
        return found;
    }

    private static Map<String, Object> ids(Object request) {
        Map<String, Object> found = new LinkedHashMap<>();
        for (String name : List.of("groupId", "memberId", "generationId", "groupInstanceId", "clientId")) {
            try {
                found.put(name, opened(call(request, name)));
            } catch (ReflectiveOperationException absent) {
                continue; // this kind of request has none
            }
        }
        return found;
    }

    /** The content of an option of Scala or Java, or null; anything else as it is. */
    private static Object opened(Object value) {
        if (value instanceof Optional<?> optional) {
            return optional.orElse(null);
        }
        String name = value == null ? "" : value.getClass().getName();
        if (name.equals("scala.None$")) {
            return null;
        }
        try {
            return name.equals("scala.Some") ? call(value, "value") : value;
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static TreeSet<String> texts(Object collection) throws ReflectiveOperationException {
        TreeSet<String> found = new TreeSet<>();
        for (Object element : listed(collection)) {
            found.add(element.toString());
        }
        return found;
    }

    static Map<String, Object> mapped(Object map) throws ReflectiveOperationException {
        Map<String, Object> found = new TreeMap<>();
        if (map instanceof Map<?, ?> plain) {
            plain.forEach((key, value) -> found.put(key.toString(), value));
            return found;
        }
        for (Object pair : listed(map)) {
            found.put(call(pair, "_1").toString(), call(pair, "_2"));
        }
        return found;
    }

    /** The elements of a collection of Scala or Java. */
    private static List<Object> listed(Object collection) throws ReflectiveOperationException {
        List<Object> found = new ArrayList<>();
        if (collection instanceof Iterable<?> plain) {
            plain.forEach(found::add);
            return found;
        }
        Object iterator = call(collection, "iterator");
        while ((Boolean) call(iterator, "hasNext")) {
            found.add(call(iterator, "next"));
        }
        return found;
    }

    static Object read(Object object, String name) throws ReflectiveOperationException {
        Class<?> type = object.getClass();
        Field field = FIELDS.get(type.getName() + name);
        for (Class<?> at = type; field == null && at != null; at = at.getSuperclass()) {
            for (Field candidate : at.getDeclaredFields()) {
                if (candidate.getName().equals(name)) {
                    field = candidate;
                    field.setAccessible(true);
                    FIELDS.put(type.getName() + name, field);
                }
            }
        }
        if (field == null) {
            throw new NoSuchFieldException(type.getName() + "." + name);
        }
        return field.get(object);
    }

    static Object call(Object object, String name) throws ReflectiveOperationException {
        String key = object.getClass().getName() + name;
        Method method = METHODS.get(key);
        if (method == null) {
            method = visible(object.getClass(), name);
            METHODS.put(key, method);
        }
        return method.invoke(object);
    }

    /** A method without parameters, from the class itself or from what it extends. */
    private static Method visible(Class<?> type, String name) throws ReflectiveOperationException {
        Method method = type.getMethod(name);
        if (type.getModule().isNamed()) {
            return method; // of the JDK: only what is public may be called
        }
        method.setAccessible(true);
        return method;
    }
}
