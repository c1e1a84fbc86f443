package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The commands of members: each answers with what the member then is, and has sent. */
final class Members {
  static final String PREFIX = "member_";

  private final ObjectMapper json = new ObjectMapper();
  private final Map<String, Member> members = new HashMap<>();

  /** Runs a command; the member's view as JSON. */
  String run(String name, JsonNode command) throws IOException {
    String who = command.get("member").asText();
    switch (name) {
      case "member_start" -> start(who, command);
      case "member_heartbeat" -> members.get(who).heartbeat();
      default -> {
        synchronized (members.get(who).monitor()) {
          step(name, members.get(who), command);
        }
      }
    }
    return view(members.get(who));
  }

  private void start(String who, JsonNode command) {
    Member before = members.remove(who);
    if (before != null) {
      before.kill();
    }
    JsonNode instance = command.get("instance");
    members.put(
        who,
        new Member(
            new Member.Settings(
                who,
                instance.isNull() ? null : instance.asText(),
                texts(command.get("protocols")),
                command.get("session_ms").asInt(),
                command.get("rebalance_ms").asInt(),
                command.get("join_version").asInt(),
                command.get("partitions").asInt())));
  }

  private static void step(String name, Member member, JsonNode command) throws IOException {
    switch (name) {
      case "member_join" -> member.join();
      case "member_complete_join" -> member.completeJoin();
      case "member_commit" -> member.commit();
      case "member_leave" -> member.leave();
      case "member_rejoin" -> member.requestRejoin();
      case "member_protocols" -> {
        member.use(texts(command.get("protocols")));
        member.requestRejoin();
      }
      case "member_answer" -> {
        JsonNode frame = command.get("frame");
        member.answer(
            command.get("number").asLong(), frame.isNull() ? null : ByteBuffer.wrap(frame.binaryValue()));
      }
      default -> throw new IllegalArgumentException("no command is called " + name);
    }
  }

  private static List<String> texts(JsonNode array) {
    List<String> found = new ArrayList<>();
    array.forEach(one -> found.add(one.asText()));
    return found;
  }

  private String view(Member member) throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.setCodec(json);
      synchronized (member.monitor()) {
        member.write(out);
      }
    }
    return text.toString();
  }
}
