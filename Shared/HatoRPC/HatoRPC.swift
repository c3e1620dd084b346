// Carries the model's requests as lines over TCP.
//
// Wire/    the lines themselves: framing, envelopes, limits, TLS; knows neither server nor client.
// Server/  `RPCServer` serves an `RPCRouter`; one plain channel handler per connection, one mailbox per event loop.
// Client/  `RPCClient` calls it: pipelined, with time limits, reconnecting, subscriptions as `AsyncSequence`;
//          `MessagesListener` and `MessagesFollower` outlive their connections.
//          Client/Wire/ has `RPCWire`: one connection as it is, on a given event loop, for the package only.
//
// No type of SwiftNIO stands in the public interface: services, commands and tests above this module never import it.
