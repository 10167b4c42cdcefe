"""An operator as files give it: the definition, its inputs, and the peers that it is raced against."""
