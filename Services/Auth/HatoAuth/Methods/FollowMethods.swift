import HatoFollow
import HatoModel
import HatoRPC

/// `auth.follow` and `auth.unfollow`: the changes of accounts, sessions and keys.
struct FollowMethods: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        router.handle(Auth.Follow.self) { [followers = service.followers] request, context in
            try FollowRefusal.check(after: request.after, epoch: request.epoch, of: "auth")
            return try await followers.follow(after: request.after, epoch: request.epoch, context)
        }
        router.handle(Auth.Unfollow.self) { [followers = service.followers] request, context in
            try followers.unfollow(request.subscription, on: context.connection)
            return Empty()
        }
    }
}
