import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Reads "class version hex" lines; answers the bytes that Kafka's class writes, and its JSON. */
public final class Referee {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            out.println(answer(words[0], Short.parseShort(words[1]), HexFormat.of().parseHex(words[2])));
            out.flush();
        }
    }

    private static String answer(String name, short version, byte[] bytes) {
        try {
            Class<?> kind = Class.forName(name);
            Message message = (Message) kind.getConstructor().newInstance();
            ByteBuffer buffer = ByteBuffer.wrap(bytes);
            message.read(new ByteBufferAccessor(buffer), version);
            if (buffer.hasRemaining()) {
                return "error " + buffer.remaining() + " bytes were left";
            }
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(written), cache, version);
            return HexFormat.of().formatHex(written.array()) + " " + json(name, kind, message, version);
        } catch (Throwable problem) {
            return "error " + String.valueOf(problem).replace('\n', ' ');
        }
    }

    private static String json(String name, Class<?> kind, Message message, short version) throws Exception {
        Class<?> converter = Class.forName(name + "JsonConverter");
        Method write = converter.getMethod("write", kind, short.class);
        return write.invoke(null, message, version).toString();
    }
}
