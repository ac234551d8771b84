import io.nats.client.JetStreamSubscription;
import io.nats.client.Message;
import io.nats.client.Nats;
import io.nats.client.PullSubscribeOptions;
import io.nats.client.impl.Headers;
import io.nats.client.impl.NatsMessage;
import java.time.Duration;
import java.util.List;

/**
 * "term" sends a message with a message id and a header with two values, receives it and ends it
 * with TERM. "get" prints the headers of a stored message. Arguments: url, "term" or "get", stream,
 * and for "get" the sequence.
 */
public class Term {
  public static void main(String[] args) throws Exception {
    try (var connection = Nats.connect(args[0])) {
      var stream = args[2];
      if (args[1].equals("term")) {
        var headers = new Headers().add("via", "a", "b, c").add("Nats-Msg-Id", "o-1");
        var jetStream = connection.jetStream();
        var subject = stream + ".orders";
        jetStream.publish(NatsMessage.builder().subject(subject).headers(headers).data("an order").build());
        var options = PullSubscribeOptions.builder().stream(stream).durable("worker").build();
        JetStreamSubscription worker = jetStream.subscribe(null, options);
        List<Message> messages = worker.fetch(1, Duration.ofSeconds(20));
        messages.get(0).term();
        connection.flush(Duration.ofSeconds(5));
        System.out.println("{\"terminated\":" + messages.size() + "}");
      } else {
        var stored = connection.jetStreamManagement().getMessage(stream, Long.parseLong(args[3]));
        System.out.printf(
            "{\"via\":\"%s\",\"type\":\"%s\"}%n",
            String.join("|", stored.getHeaders().get("via")),
            stored.getHeaders().getFirst("Content-Type"));
      }
    }
  }
}
