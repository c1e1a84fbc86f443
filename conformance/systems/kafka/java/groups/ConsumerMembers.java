package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;

/** The commands of members of KIP-848: each answers with what the member then is, and has sent. */
final class ConsumerMembers {
  static final String PREFIX = "consumer_";

  private final ObjectMapper json = new ObjectMapper();
  private final Map<String, ConsumerMember> members = new HashMap<>();

  /** Runs a command; the member's view as JSON. */
  String run(String name, JsonNode command) throws IOException {
    String who = command.get("member").asText();
    if (name.equals("consumer_start")) {
      JsonNode instance = command.get("instance");
      members.put(
          who,
          new ConsumerMember(
              new ConsumerMember.Settings(
                  who,
                  instance.isNull() ? null : instance.asText(),
                  command.get("rebalance_ms").asInt(),
                  command.get("partitions").asInt())));
    } else {
      step(name, members.get(who), command);
    }
    return view(members.get(who));
  }

  private static void step(String name, ConsumerMember member, JsonNode command) throws IOException {
    switch (name) {
      case "consumer_join" -> member.join();
      case "consumer_heartbeat" -> member.heartbeat();
      case "consumer_begin_reconciliation" -> member.beginReconciliation();
      case "consumer_revoke" -> member.revoke();
      case "consumer_assign" -> member.assign();
      case "consumer_poll" -> member.poll();
      case "consumer_leave" -> member.leave();
      case "consumer_commit" -> member.commit(command.get("offset").asLong());
      case "consumer_answer" -> {
        JsonNode frame = command.get("frame");
        member.answer(
            command.get("number").asLong(), frame.isNull() ? null : ByteBuffer.wrap(frame.binaryValue()));
      }
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
  }

  private String view(ConsumerMember member) throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.setCodec(json);
      member.write(out);
    }
    return text.toString();
  }
}
