package kconform;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;

/**
 * Objects of a class of Kafka's of which some methods are the harness's.
 *
 * <p>A class is no interface, so no proxy can stand for it, and a subclass in Java's source would
 * have to call a constructor that differs between versions. So a subclass is written as bytes: each
 * overriding method hands its name and its arguments to a function. No constructor is run, so what
 * is not overridden must not be called.
 */
final class Overridden {
  private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
  private static final Map<Class<?>, Class<?>> SUBCLASSES = new HashMap<>();
  private static final String HANDLER = "handler";
  private static final String FUNCTION = "java/util/function/BiFunction";
  private static final int STACK = 8; // the array twice, an index, a long, and some to spare

  private Overridden() {}

  /** An object of which `names` are answered by the handler: a method's name and its arguments. */
  static Object make(Class<?> type, Set<String> names, BiFunction<String, Object[], Object> handler) {
    Class<?> subclass = SUBCLASSES.computeIfAbsent(type, key -> subclass(key, names));
    try {
      Class<?> unsafe = Class.forName("sun.misc.Unsafe");
      Field instance = unsafe.getDeclaredField("theUnsafe");
      instance.setAccessible(true);
      Object made =
          unsafe.getMethod("allocateInstance", Class.class).invoke(instance.get(null), subclass);
      subclass.getField(HANDLER).set(made, handler);
      return made;
    } catch (ReflectiveOperationException error) {
      throw new Kafka.Unsupported("no object of " + type + " can be made: " + error);
    }
  }

  private static Class<?> subclass(Class<?> type, Set<String> names) {
    List<Method> methods =
        Arrays.stream(type.getMethods())
            .filter(method -> names.contains(method.getName()) && !method.isBridge())
            .toList();
    try {
      return MethodHandles.privateLookupIn(type, LOOKUP).defineClass(new ClassFile(type).bytes(methods));
    } catch (IllegalAccessException | IOException error) {
      throw new Kafka.Unsupported("no subclass of " + type + " can be defined: " + error);
    }
  }

  /** The class file format, as far as methods without branches need it (JVMS, chapter 4). */
  private static final class ClassFile {
    private final ByteArrayOutputStream pooled = new ByteArrayOutputStream();
    private final DataOutputStream pool = new DataOutputStream(pooled);
    private final Map<String, Integer> constants = new HashMap<>();
    private int count = 1;
    private final Class<?> parent;
    private final String name;

    ClassFile(Class<?> parent) {
      this.parent = parent;
      name = slashed(parent) + "Overridden";
    }

    private static String slashed(Class<?> type) {
      return type.getName().replace('.', '/');
    }

    byte[] bytes(List<Method> methods) throws IOException {
      ByteArrayOutputStream bodies = new ByteArrayOutputStream();
      DataOutputStream body = new DataOutputStream(bodies);
      int self = type(name);
      int above = type(slashed(parent));
      body.writeShort(0); // interfaces
      body.writeShort(1); // fields
      member(body, Modifier.PUBLIC, HANDLER, "L" + FUNCTION + ";");
      body.writeShort(0);
      body.writeShort(methods.size());
      for (Method method : methods) {
        write(body, method);
      }
      body.writeShort(0); // attributes
      ByteArrayOutputStream file = new ByteArrayOutputStream();
      DataOutputStream out = new DataOutputStream(file);
      out.writeInt(0xCAFEBABE);
      out.writeInt(52); // Java 8
      out.writeShort(count);
      pooled.writeTo(out);
      out.writeShort(Modifier.PUBLIC | 0x20); // ACC_SUPER
      out.writeShort(self);
      out.writeShort(above);
      bodies.writeTo(out);
      return file.toByteArray();
    }

    private void member(DataOutputStream out, int access, String member, String type)
        throws IOException {
      out.writeShort(access);
      out.writeShort(text(member));
      out.writeShort(text(type));
    }

    private void write(DataOutputStream out, Method method) throws IOException {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      int locals = code(new DataOutputStream(bytes), method);
      String type =
          MethodType.methodType(method.getReturnType(), method.getParameterTypes())
              .toMethodDescriptorString();
      member(out, Modifier.PUBLIC, method.getName(), type);
      out.writeShort(1); // attributes
      out.writeShort(text("Code"));
      out.writeInt(bytes.size() + 12);
      out.writeShort(STACK);
      out.writeShort(locals);
      out.writeInt(bytes.size());
      bytes.writeTo(out);
      out.writeShort(0); // exceptions
      out.writeShort(0); // attributes
    }

    /** `return handler.apply(name, arguments)`; the number of local variables. */
    private int code(DataOutputStream out, Method method) throws IOException {
      Class<?>[] parameters = method.getParameterTypes();
      out.writeByte(0x2a); // aload_0
      operation(out, 0xb4, reference(9, name, HANDLER, "L" + FUNCTION + ";")); // getfield
      operation(out, 0x13, string(method.getName())); // ldc_w
      out.writeByte(0x10); // bipush
      out.writeByte(parameters.length);
      operation(out, 0xbd, type("java/lang/Object")); // anewarray
      int local = 1;
      for (int i = 0; i < parameters.length; i++) {
        out.writeByte(0x59); // dup
        out.writeByte(0x10); // bipush
        out.writeByte(i);
        local += load(out, parameters[i], local);
        out.writeByte(0x53); // aastore
      }
      String apply = "(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;";
      operation(out, 0xb9, reference(11, FUNCTION, "apply", apply)); // invokeinterface
      out.writeShort(3 << 8);
      finish(out, method.getReturnType());
      return local;
    }

    /** Loads a parameter as an object; how many local variables it takes. */
    private int load(DataOutputStream out, Class<?> type, int local) throws IOException {
      int load = type == long.class ? 0x16 : type.isPrimitive() ? 0x15 : 0x19; // lload, iload, aload
      out.writeByte(load);
      out.writeByte(local);
      if (type.isPrimitive()) {
        MethodType boxing = MethodType.methodType(MethodType.methodType(type).wrap().returnType(), type);
        String owner = slashed(boxing.returnType());
        int boxed = reference(10, owner, "valueOf", boxing.toMethodDescriptorString());
        operation(out, 0xb8, boxed); // invokestatic
      }
      return type == long.class ? 2 : 1;
    }

    private void finish(DataOutputStream out, Class<?> type) throws IOException {
      if (type == void.class) {
        out.writeByte(0x57); // pop
        out.writeByte(0xb1); // return
      } else {
        operation(out, 0xc0, type(slashed(type))); // checkcast
        out.writeByte(0xb0); // areturn
      }
    }

    private static void operation(DataOutputStream out, int code, int constant) throws IOException {
      out.writeByte(code);
      out.writeShort(constant);
    }

    // ---- constants ---------------------------------------------------------------------------

    private interface Entry {
      void write() throws IOException;
    }

    private int constant(String key, Entry entry) throws IOException {
      Integer known = constants.get(key);
      if (known == null) {
        entry.write();
        known = count++;
        constants.put(key, known);
      }
      return known;
    }

    private int text(String value) throws IOException {
      return constant(
          "text " + value,
          () -> {
            pool.writeByte(1);
            pool.writeUTF(value);
          });
    }

    private int pointer(int tag, int text) throws IOException {
      return constant(
          tag + " " + text,
          () -> {
            pool.writeByte(tag);
            pool.writeShort(text);
          });
    }

    private int type(String slashed) throws IOException {
      return pointer(7, text(slashed));
    }

    private int string(String value) throws IOException {
      return pointer(8, text(value));
    }

    private int pair(int tag, int first, int second) throws IOException {
      return constant(
          tag + " " + first + " " + second,
          () -> {
            pool.writeByte(tag);
            pool.writeShort(first);
            pool.writeShort(second);
          });
    }

    private int reference(int tag, String owner, String member, String type) throws IOException {
      return pair(tag, type(owner), pair(12, text(member), text(type)));
    }
  }
}
