/// Translates between Firebase's words and the model's, as values.
///
/// This module uses no clock, disk or network. Requests of Firebase's clients become calls of the services' methods;
/// results and notifications of the services become the responses, events and messages that these clients expect.
/// Values that pass through stay JSON text, which is checked and copied.
enum HatoFirebase {}
