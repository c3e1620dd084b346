// Hands one message to an SMTP server.
//
// Message/   addresses and messages that are known to be right, and how a message is encoded (MIME).
// SMTP/      the protocol as values: replies, the state machine of a connection, what a reply means for the message.
// Client/    `SMTPClient` sends messages: one connection, kept for a while, on one event loop.
// Settings/  what an operator sets: the URL of the server and the password.
//
// No type of SwiftNIO stands in the public interface.
