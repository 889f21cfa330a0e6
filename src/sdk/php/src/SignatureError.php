<?php

declare(strict_types=1);

namespace ReviewRelay;

/** A delivery has no valid signature or is too old. Respond with status 401. */
final class SignatureError extends \RuntimeException
{
}
