import HatoModel
import HatoRPC
import Logging

extension TriggerSource {
    /// The content of a firing with what its trigger's type gives it; nothing when the data do not fit the type.
    func typed(_ content: Content, of firing: Firing) -> Content {
        do {
            var content = content
            content.notification = try firing.trigger.completed(content.notification, outbox.limits)
            return content
        } catch {
            outbox.metrics.changeIllTyped()
            notices.notice(
                .trigger("type"), "a trigger fires, but its data do not fit its type: nothing is sent",
                [
                    "trigger": "\(firing.trigger.trigger.id)", "database": "\(database)",
                    "path": "\(firing.change.path)", "type": "\(firing.trigger.trigger.type ?? "")",
                    "reason": "\(error.reason)", "field": "\(error.field ?? "")",
                ], level: .warning)
            return Content(recipients: nil, notification: nil)
        }
    }
}
