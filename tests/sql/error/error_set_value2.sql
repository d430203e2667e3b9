SET on_eval_error = ignore;
