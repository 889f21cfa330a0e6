import { notifications } from "@mantine/notifications";

import { errorMessageOf } from "./error-message.ts";

const CLOSE = { "aria-label": "Close" };

/** Shows notifications in a corner of the page. Screen readers announce them. */
export const notify = {
  done(message: string): void {
    notifications.show({ message, color: "teal", closeButtonProps: CLOSE });
  },
  failed(error: unknown): void {
    const { title, advice } = errorMessageOf(error);
    notifications.show({
      title,
      message: advice,
      color: "red",
      autoClose: 10_000,
      closeButtonProps: CLOSE,
    });
  },
  /** Removes all notifications when a session ends, so that the next user does not see them. */
  clear(): void {
    notifications.clean();
  },
};
