// Hands one delivery to a push service, a mailbox or a webhook.
//
// Channel.swift  the seam: each way to reach a device is one `Channel`, a folder here with a case of `DeviceAddress`.
// APNs/          Apple's push service: the key, its provider tokens, the request, the connections, and what a response
//                means.
// FCM/           Firebase Cloud Messaging: the service account, its access token, the message, the call, and what a
//                response means.
// WebPush/       browsers and UnifiedPush: the encrypted body, the signature of the app, the call, and what a response
//                means.
// Webhook/       Standard Webhooks: secrets, signatures, the body, the call, and what an answer means.
// Mail/          e-mail: the server of an app, the message of a delivery or a digest, and what a reply means.
//
// Shared by them: `BoundedCall` and `BodyTimeLimit` (a response bounded in time and bytes), `PayloadFitting` and
// `TextCutting` (what is left out of a payload that is too large), `MemberKind` (which members of a platform's own are
// taken), `AppTable` (the credentials of each app), `ReplaceableClient`, `RetryAfter` and Signing/.
//
// A channel tries once. Whether to try again, and when, is the notifier's decision; a channel only says what happened.
