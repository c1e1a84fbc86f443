package kconform.workload;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.slf4j.LoggerFactory;

/**
 * Kafka's own client takes the steps of a plan: the argument is a job's file.
 *
 * The same as conformance/workload/client.py does with the libraries of Python; what each line
 * means is said there, and the time-outs are those of conformance/workload/ports.py.
 */
public final class Workload implements ConsumerRebalanceListener {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long DELIVERY_MS = 8_000, REQUEST_MS = 3_000, TRANSACTION_MS = 10_000;
    private static final long SESSION_MS = 6_000, ANSWER_MS = 12_000, POLL_MS = 300;
    private static final long DRAIN_MS = 60_000;
    private static final Duration ANSWER = Duration.ofMillis(ANSWER_MS);

    private final String bootstrap;
    private final JsonNode plan;
    private final Log log;
    private final List<String> topics = new ArrayList<>();
    private final Map<TopicPartition, Long> positions = new TreeMap<>(Workload::compare);
    private final Map<TopicPartition, Long> read = new TreeMap<>(Workload::compare);
    private final Set<TopicPartition> owned = new TreeSet<>(Workload::compare);
    private List<ConsumerRecord<String, String>> gathered;
    private KafkaProducer<String, String> producer;
    private KafkaConsumer<String, String> consumer;
    private volatile boolean ended;
    private volatile boolean failed;

    private Workload(JsonNode job) throws IOException {
        bootstrap = job.get("bootstrap").asText();
        plan = job.get("plan");
        plan.get("topics").forEach(topic -> topics.add(topic.asText()));
        log = new Log(job.get("log").asText(), text("process"));
        ObjectNode fields = JSON.createObjectNode();
        fields.set("configured", job.get("configured"));
        log.event("ok", "configure", fields);
    }

    public static void main(String[] arguments) throws Exception {
        LoggerFactory.getLogger(Workload.class); // it adds a hook too, and fails in a shutdown
        Workload client = new Workload(JSON.readTree(new File(arguments[0])));
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            client.ended = true;
            try {
                closed.await();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(client.failed ? 1 : 0); // not 143: it closed in order
        }));
        try {
            client.run();
        } catch (Exception | Error error) {
            error.printStackTrace();
            client.failed = true;
        } finally {
            closed.countDown();
        }
    }

    private void run() throws Exception {
        String role = text("role");
        if (role.equals("reader") || role.equals("final")) {
            assign();
        } else if (role.equals("transformer")) {
            subscribe();
        }
        for (JsonNode step : plan.get("steps")) {
            rest((long) (step.get("rest").asDouble() * 1000));
            if (ended) {
                break;
            }
            take(step);
        }
        close();
    }

    private void take(JsonNode step) throws Exception {
        int most = step.get("most").asInt();
        switch (step.get("do").asText()) {
            case "send": send(records(step.get("records"))); break;
            case "transaction": transaction(records(step.get("records")), step.get("commits").asBoolean()); break;
            case "transform": transform(step, most); break;
            case "poll": poll(most); break;
            case "commit": commit(); break;
            case "fetch": fetch(); break;
            case "seek": seek(most); break;
            case "subscribe": subscribe(); break;
            case "fence": fence(step.get("ids")); break;
            case "drain": drain(most); break;
            default: throw new IllegalStateException("unknown step " + step);
        }
    }

    // --- clients ---------------------------------------------------------------------------------

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", text("process"));
        settings.put("request.timeout.ms", String.valueOf(REQUEST_MS));
        return settings;
    }

    private KafkaProducer<String, String> producer(String transactionalId) {
        Properties settings = settings();
        settings.put("acks", text("acks"));
        settings.put("linger.ms", "2");
        settings.put("enable.idempotence", String.valueOf(!text("kind").equals("plain")));
        settings.put("delivery.timeout.ms", String.valueOf(DELIVERY_MS));
        settings.put("max.block.ms", String.valueOf(DELIVERY_MS));
        if (!transactionalId.isEmpty()) {
            settings.put("transactional.id", transactionalId);
            settings.put("transaction.timeout.ms", String.valueOf(TRANSACTION_MS));
        }
        KafkaProducer<String, String> made =
            new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        if (!transactionalId.isEmpty()) {
            try {
                made.initTransactions();
            } catch (KafkaException error) {
                made.close(Duration.ZERO);
                throw error;
            }
        }
        return made;
    }

    /** Made again while brokers are away; null if the client is to end. */
    private KafkaProducer<String, String> producerUntilMade(String transactionalId) throws InterruptedException {
        while (!ended) {
            try {
                return producer(transactionalId);
            } catch (KafkaException error) {
                Thread.sleep(200);
            }
        }
        return null;
    }

    private boolean hasProducer() throws InterruptedException {
        if (producer == null) {
            producer = producerUntilMade(text("transactional_id"));
        }
        return producer != null;
    }

    private void makeConsumer() {
        if (consumer != null) {
            return;
        }
        Properties settings = settings();
        settings.put("isolation.level", text("isolation"));
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("default.api.timeout.ms", String.valueOf(ANSWER_MS));
        settings.put("fetch.max.wait.ms", "100");
        if (text("group_protocol").equals("consumer")) {
            settings.put("group.protocol", "consumer");
        } else { // else the broker settles these
            settings.put("session.timeout.ms", String.valueOf(SESSION_MS));
            settings.put("heartbeat.interval.ms", String.valueOf(SESSION_MS / 4));
            settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
        }
        if (!text("group").isEmpty()) {
            settings.put("group.id", text("group"));
        }
        consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private void renewProducer() {
        if (producer != null) {
            producer.close(Duration.ZERO);
        }
        producer = null;
        log.renew();
    }

    private void rest(long millis) throws InterruptedException {
        Thread.sleep(millis);
    }

    private void close() {
        if (consumer != null) {
            closed(() -> consumer.close(Duration.ofSeconds(5)));
        }
        if (producer != null) {
            closed(() -> producer.close(Duration.ofSeconds(5)));
        }
    }

    private void closed(Runnable close) {
        String error = "";
        try {
            close.run();
        } catch (KafkaException problem) {
            error = problem.toString();
        }
        log.event(error.isEmpty() ? "ok" : "info", "close", JSON.createObjectNode().put("error", error));
    }

    // --- producers -------------------------------------------------------------------------------

    /** What a producer was told of a record; an offset below 0 is not known. */
    private record Answer(String outcome, long offset, String error) {
        boolean acknowledged() {
            return outcome.equals("ok");
        }
    }

    private List<Answer> answers(List<ProducerRecord<String, String>> records) throws InterruptedException {
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        for (ProducerRecord<String, String> record : records) {
            futures.add(producer.send(record));
        }
        producer.flush();
        List<Answer> answers = new ArrayList<>();
        for (Future<RecordMetadata> future : futures) {
            try {
                RecordMetadata metadata = future.get(ANSWER_MS, TimeUnit.MILLISECONDS);
                answers.add(new Answer("ok", metadata.hasOffset() ? metadata.offset() : -1, ""));
            } catch (ExecutionException | TimeoutException error) {
                boolean refused = isOversized(records.get(answers.size()))
                        && error.getCause() instanceof RecordTooLargeException;
                answers.add(new Answer(refused ? "fail" : "info", -1, error.toString()));
            }
        }
        return answers;
    }

    private void send(List<ProducerRecord<String, String>> records) throws InterruptedException {
        if (!hasProducer()) {
            return;
        }
        long start = log.begin("send", fields("sent", sent(records, null)));
        List<Answer> answers;
        try {
            answers = answers(records);
        } catch (KafkaException error) {
            log.end(start, "send", "info", JSON.createObjectNode().put("error", error.toString()));
            renewProducer();
            missing(records, null);
            return;
        }
        List<ObjectNode> lines = new ArrayList<>();
        for (String outcome : List.of("ok", "fail", "info")) {
            List<ProducerRecord<String, String>> chosen = new ArrayList<>();
            List<Answer> own = new ArrayList<>();
            for (int i = 0; i < records.size(); i++) {
                if (answers.get(i).outcome().equals(outcome)) {
                    chosen.add(records.get(i));
                    own.add(answers.get(i));
                }
            }
            if (!chosen.isEmpty()) {
                ObjectNode line = fields("sent", sent(chosen, own));
                line.put("type", outcome).put("error", own.get(0).error());
                lines.add(line);
            }
        }
        log.endInParts(start, "send", lines);
        missing(records, answers);
    }

    /** The closer sends again what was not acknowledged, as another value. */
    private void missing(List<ProducerRecord<String, String>> records, List<Answer> answers)
            throws InterruptedException {
        List<ProducerRecord<String, String>> again = new ArrayList<>();
        for (int i = 0; i < records.size(); i++) {
            ProducerRecord<String, String> record = records.get(i);
            if (answers == null || !answers.get(i).acknowledged()) {
                again.add(new ProducerRecord<>(record.topic(), record.partition(), null, record.value() + "-again"));
            }
        }
        if (!again.isEmpty() && text("role").equals("closer") && !ended) {
            rest(300);
            send(again);
        }
    }

    private void transaction(List<ProducerRecord<String, String>> records, boolean commits)
            throws InterruptedException {
        if (hasProducer()) {
            attempt(records, Map.of(), null, commits);
        }
    }

    private void transform(JsonNode step, int most) throws Exception {
        if (!hasProducer()) {
            return;
        }
        makeConsumer();
        gathered = new ArrayList<>();
        poll(most);
        List<ConsumerRecord<String, String>> polled = gathered;
        gathered = null;
        if (polled.isEmpty()) {
            return;
        }
        List<ProducerRecord<String, String>> records = new ArrayList<>();
        Map<TopicPartition, Long> behind = new TreeMap<>(Workload::compare);
        Map<TopicPartition, Long> first = new LinkedHashMap<>();
        for (ConsumerRecord<String, String> record : polled) {
            String value = step.get("value").asText() + "-" + records.size();
            records.add(new ProducerRecord<>(text("output"), record.partition(), null, value));
            TopicPartition partition = new TopicPartition(record.topic(), record.partition());
            behind.put(partition, record.offset() + 1);
            first.putIfAbsent(partition, record.offset());
        }
        if (!attempt(records, behind, polled, step.get("commits").asBoolean())) {
            first.forEach(this::seekTo);
        }
    }

    /** A transaction; whether it has committed for certain. */
    private boolean attempt(
            List<ProducerRecord<String, String>> records,
            Map<TopicPartition, Long> behind,
            List<ConsumerRecord<String, String>> polled,
            boolean commits) throws InterruptedException {
        long start = log.begin("txn", fields("sent", sent(records, null)));
        List<Answer> answers = null;
        boolean tried = false;
        boolean over = false;
        String outcome = "info";
        String error = "";
        try {
            producer.beginTransaction();
            answers = answers(records);
            for (Answer answer : answers) {
                if (!answer.acknowledged()) {
                    throw new KafkaException(answer.error());
                }
            }
            if (polled != null) {
                producer.sendOffsetsToTransaction(offsets(behind), consumer.groupMetadata());
            }
            if (commits) {
                tried = true;
                producer.commitTransaction();
                outcome = "ok";
            }
        } catch (KafkaException problem) {
            error = problem.toString();
        }
        if (!outcome.equals("ok")) {
            try {
                producer.abortTransaction();
                outcome = tried ? "info" : "fail";
            } catch (KafkaException | IllegalStateException problem) {
                error = error.isEmpty() ? problem.toString() : error;
                over = true;
            }
        }
        ObjectNode line = fields("sent", sent(records, answers)).put("error", error);
        if (polled != null) {
            line.set("polled", polled(polled));
            line.set("committed", positions(behind));
            line.put("group", text("group"));
        }
        log.end(start, "txn", outcome, line);
        if (over) {
            renewProducer();
        }
        return outcome.equals("ok");
    }

    private void fence(JsonNode ids) throws InterruptedException {
        for (JsonNode id : ids) {
            KafkaProducer<String, String> fencing = producerUntilMade(id.asText());
            if (fencing != null) {
                fencing.close(Duration.ofSeconds(5));
            }
        }
    }

    // --- consumers -------------------------------------------------------------------------------

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> given) {
        owned.addAll(given);
        assigned(owned);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> given) {
        owned.removeAll(given);
        assigned(owned);
    }

    private void assigned(Collection<TopicPartition> partitions) {
        if (gathered != null && !gathered.isEmpty()) {
            log.event("ok", "poll", fields("polled", polled(gathered)));
            gathered = new ArrayList<>();
        }
        positions.keySet().retainAll(partitions);
        ArrayNode keys = JSON.createArrayNode();
        partitions.forEach(partition -> keys.add(key(partition.topic(), partition.partition())));
        log.event("ok", "assign", fields("assigned", keys));
    }

    private void subscribe() {
        makeConsumer();
        owned.clear();
        assigned(owned);
        log.event("ok", "subscribe", JSON.createObjectNode());
        try {
            consumer.unsubscribe();
            consumer.subscribe(topics, this);
        } catch (KafkaException error) {
            log.event("info", "subscribe", JSON.createObjectNode().put("error", error.toString()));
        }
    }

    private List<TopicPartition> everything() {
        List<TopicPartition> partitions = new ArrayList<>();
        for (String topic : topics) {
            for (int i = 0; i < plan.get("partitions").asInt(); i++) {
                partitions.add(new TopicPartition(topic, i));
            }
        }
        return partitions;
    }

    private void assign() {
        makeConsumer();
        consumer.assign(everything());
        consumer.seekToBeginning(everything());
        assigned(everything());
    }

    private void poll(int most) {
        makeConsumer();
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        try {
            consumer.poll(Duration.ofMillis(POLL_MS)).forEach(records::add);
        } catch (KafkaException error) {
            log.event("info", "poll", JSON.createObjectNode().put("error", error.toString()));
        }
        if (records.isEmpty()) {
            return;
        }
        for (ConsumerRecord<String, String> record : records) {
            TopicPartition partition = new TopicPartition(record.topic(), record.partition());
            positions.put(partition, record.offset() + 1);
            read.put(partition, record.offset() + 1);
        }
        if (gathered == null) {
            log.event("ok", "poll", fields("polled", polled(records)));
        } else {
            gathered.addAll(records);
        }
    }

    private void commit() {
        if (positions.isEmpty()) {
            return;
        }
        ObjectNode fields = fields("committed", positions(positions)).put("group", text("group"));
        long start = log.begin("commit", fields);
        try {
            consumer.commitSync(offsets(positions), ANSWER);
            log.end(start, "commit", "ok", fields);
        } catch (KafkaException error) {
            log.end(start, "commit", "info", fields.deepCopy().put("error", error.toString()));
        }
    }

    private void fetch() {
        makeConsumer();
        long start = System.nanoTime();
        Map<TopicPartition, Long> fetched = new TreeMap<>(Workload::compare);
        try {
            consumer.committed(new HashSet<>(everything()), ANSWER).forEach((partition, position) -> {
                if (position != null) {
                    fetched.put(partition, position.offset());
                }
            });
        } catch (KafkaException error) {
            return;
        }
        ObjectNode line = fields("fetched", positions(fetched));
        log.event("ok", "fetch", line.put("group", text("group")).put("start", start));
    }

    private void seek(int back) {
        read.forEach((partition, position) -> seekTo(partition, Math.max(0, position - back)));
    }

    private void seekTo(TopicPartition partition, long offset) {
        try {
            consumer.seek(partition, offset);
        } catch (KafkaException | IllegalStateException error) {
            return;
        }
        positions.remove(partition);
        ArrayNode keys = JSON.createArrayNode().add(key(partition.topic(), partition.partition()));
        log.event("ok", "seek", fields("moved", keys));
    }

    private void drain(int most) {
        Set<TopicPartition> open = new HashSet<>(everything());
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(DRAIN_MS);
        while (!open.isEmpty() && !ended && System.nanoTime() < until) {
            gathered = new ArrayList<>();
            poll(most);
            List<ConsumerRecord<String, String>> records = gathered;
            gathered = null;
            if (!records.isEmpty()) {
                log.event("ok", "poll", fields("polled", polled(records)));
            }
            for (ConsumerRecord<String, String> record : records) {
                if (record.value().startsWith("end-")) {
                    open.remove(new TopicPartition(record.topic(), record.partition()));
                }
            }
        }
    }

    // --- lines -----------------------------------------------------------------------------------

    private String text(String field) {
        return plan.get(field).asText();
    }

    private static int compare(TopicPartition a, TopicPartition b) {
        return key(a.topic(), a.partition()).compareTo(key(b.topic(), b.partition()));
    }

    private static String key(String topic, int partition) {
        return topic + "-" + partition;
    }

    private static ObjectNode fields(String name, JsonNode value) {
        return JSON.createObjectNode().set(name, value);
    }

    /** Only records that every broker must refuse have keys (conformance/workload/plan.py). */
    private static boolean isOversized(ProducerRecord<String, String> record) {
        return record.key() != null;
    }

    private static List<ProducerRecord<String, String>> records(JsonNode nodes) {
        List<ProducerRecord<String, String>> records = new ArrayList<>();
        for (JsonNode node : nodes) {
            int partition = node.get("partition").asInt();
            int bytes = node.get("key_bytes").asInt();
            String key = bytes == 0 ? null : "k".repeat(bytes);
            records.add(new ProducerRecord<>(node.get("topic").asText(), partition, key, node.get("value").asText()));
        }
        return records;
    }

    private static ArrayNode sent(List<ProducerRecord<String, String>> records, List<Answer> answers) {
        ArrayNode items = JSON.createArrayNode();
        for (int i = 0; i < records.size(); i++) {
            ProducerRecord<String, String> record = records.get(i);
            ObjectNode item = items.addObject();
            item.put("key", key(record.topic(), record.partition())).put("value", record.value());
            if (answers != null && answers.get(i).offset() >= 0) {
                item.put("offset", answers.get(i).offset());
            }
        }
        return items;
    }

    private static ArrayNode polled(List<ConsumerRecord<String, String>> records) {
        ArrayNode items = JSON.createArrayNode();
        for (ConsumerRecord<String, String> record : records) {
            items.addObject()
                .put("key", key(record.topic(), record.partition()))
                .put("value", record.value())
                .put("offset", record.offset());
        }
        return items;
    }

    private static ArrayNode positions(Map<TopicPartition, Long> positions) {
        ArrayNode items = JSON.createArrayNode();
        positions.forEach((partition, offset) ->
            items.addObject().put("key", key(partition.topic(), partition.partition())).put("offset", offset));
        return items;
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(Map<TopicPartition, Long> positions) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        positions.forEach((partition, offset) -> offsets.put(partition, new OffsetAndMetadata(offset)));
        return offsets;
    }

    /** The file of lines; see conformance/workload/log.py. */
    private static final class Log {
        private final OutputStream file;
        private final String client;
        private final List<Runnable> waiting = new ArrayList<>();
        private String process;
        private int instances = 1;
        private boolean open;

        Log(String path, String process) throws IOException {
            this.file = new FileOutputStream(path, true);
            this.client = process;
            this.process = process;
        }

        void renew() {
            instances++;
            process = client + "." + instances;
        }

        long begin(String f, ObjectNode fields) {
            long start = System.nanoTime();
            write("invoke", f, fields);
            open = true;
            return start;
        }

        void event(String type, String f, ObjectNode fields) {
            if (open) {
                waiting.add(() -> write(type, f, fields));
            } else {
                write(type, f, fields);
            }
        }

        void end(long start, String f, String type, ObjectNode fields) {
            endInParts(start, f, List.of(fields.deepCopy().put("type", type)));
        }

        void endInParts(long start, String f, List<ObjectNode> lines) {
            for (ObjectNode line : lines) {
                write(line.get("type").asText(), f, line.put("start", start));
            }
            open = false;
            waiting.forEach(Runnable::run);
            waiting.clear();
        }

        private void write(String type, String f, ObjectNode fields) {
            ObjectNode line = JSON.createObjectNode();
            line.put("process", process).put("type", type).put("f", f).put("time", System.nanoTime());
            fields.fields().forEachRemaining(field -> {
                boolean says = !field.getValue().isTextual() || !field.getValue().asText().isEmpty();
                if (says && !line.has(field.getKey())) {
                    line.set(field.getKey(), field.getValue());
                }
            });
            try {
                file.write((line + "\n").getBytes(StandardCharsets.UTF_8));
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
