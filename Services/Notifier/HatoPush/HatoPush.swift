// Hands one delivery to a webhook.
//
// Channel.swift  the seam: each way to reach a device is one `Channel`. APNs, FCM and Web Push join here, each as a
//                folder beside Webhook/ with a case of `DeviceAddress`; nothing above this module changes for them.
// Webhook/       Standard Webhooks: secrets, signatures, the body, the call, and what an answer means.
//
// A channel tries once. Whether to try again, and when, is the notifier's decision; a channel only says what happened.
