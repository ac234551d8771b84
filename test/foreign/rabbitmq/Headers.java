import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.LongString;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Sends a message with a header of every type, or reads one. Arguments: url, "send" or "get",
 * queue, and for "send" whether a 64-bit header is added. "get" prints the class and the value of
 * every header and property.
 */
public class Headers {
  public static void main(String[] args) throws Exception {
    var factory = new ConnectionFactory();
    factory.setUri(args[0]);
    try (var connection = factory.newConnection();
        var channel = connection.createChannel()) {
      if (args[1].equals("send")) {
        channel.confirmSelect();
        channel.basicPublish("", args[2], properties(args[3].equals("large")), "an order".getBytes());
        channel.waitForConfirmsOrDie();
        System.out.println("{\"sent\":true}");
      } else {
        GetResponse got = channel.basicGet(args[2], true);
        System.out.println(got == null ? "{}" : describe(got));
      }
    }
  }

  private static AMQP.BasicProperties properties(boolean large) {
    var headers = new HashMap<String, Object>();
    headers.put("text", "plain");
    headers.put("int", 5);
    headers.put("negative", -70000);
    headers.put("long", 1L << 40);
    headers.put("double", 1.5);
    headers.put("boolean", true);
    headers.put("null", null);
    headers.put("bytes", new byte[] {0, (byte) 255, 7});
    headers.put("decimal", new BigDecimal("19.99"));
    headers.put("date", new Date(1_700_000_000_000L));
    headers.put("list", List.of(1, "x", true));
    headers.put("table", Map.of("inner", Map.of("n", 7)));
    if (large) headers.put("large", (1L << 53) + 1);
    return new AMQP.BasicProperties.Builder()
        .headers(headers)
        .timestamp(new Date(1_600_000_000_000L))
        .deliveryMode(2)
        .correlationId("c-1")
        .build();
  }

  private static String describe(GetResponse got) {
    var props = got.getProps();
    var seen = new TreeMap<String, String>();
    props.getHeaders().forEach((name, value) -> seen.put("header " + name, show(value)));
    seen.put("contentType", String.valueOf(props.getContentType()));
    seen.put("messageId", String.valueOf(props.getMessageId()));
    seen.put("timestamp", show(props.getTimestamp()));
    seen.put("deliveryMode", show(props.getDeliveryMode()));
    seen.put("correlationId", props.getCorrelationId());
    var json = new ArrayList<String>();
    seen.forEach((name, value) -> json.add(quote(name) + ":" + quote(value)));
    return "{" + String.join(",", json) + "}";
  }

  private static String show(Object value) {
    if (value == null) return "null";
    if (value instanceof byte[] bytes) return "bytes " + Base64.getEncoder().encodeToString(bytes);
    if (value instanceof LongString text) return "string " + text;
    if (value instanceof Date date) return "date " + date.getTime();
    if (value instanceof List<?> list) return "list " + list.stream().map(Headers::show).toList();
    if (value instanceof Map<?, ?> map) {
      var inner = new TreeMap<String, String>();
      map.forEach((key, one) -> inner.put(String.valueOf(key), show(one)));
      return "table " + inner;
    }
    return value.getClass().getSimpleName() + " " + value;
  }

  private static String quote(String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
  }
}
