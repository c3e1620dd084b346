// Starts a throw-away stack and hands out clients, for users' test suites and our own.
//
// ```swift
// try await TestStack.run { stack in
//     let masuo = try await stack.newUser()
//     let messages = stack.client(.messages, as: .user(idToken: masuo.idToken))
//     let pushed = try await messages.call(Messages.Push(path: path, value: ["text": "ただいま"]))
// }
// ```
